// `leeway codec list`: measures the cost of each codec in bits and in error.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leeway/codec.h"

namespace leeway::tools::codecs {

// One codec's properties. Errors are signal to noise ratios in dB. They are infinite if the codec
// changes nothing, and empty for a rounding that the codec does not have.
struct ListRow {
  std::string text;
  std::string use;
  double bits = 0.0;  // bits of an element of a 2,048-element packet, header included
  // Number of elements that share a scale; 0 if the whole packet shares one, or if there is no
  // scale.
  std::size_t block = 0;
  std::string rounding;  // "exact", "both", "nearest" or "stochastic"
  std::optional<double> normal_nearest;
  std::optional<double> normal_stochastic;
  std::optional<double> lognormal_nearest;
  std::optional<double> lognormal_stochastic;
};

// Measures the errors of all codecs, on `samples` values of N(0,1) and on as many of a lognormal
// distribution with sigma 1.
std::vector<ListRow> measure_list(std::size_t samples);

// Returns a table with lines of at most `width` columns if possible; with 0, of any width.
std::string list_text(std::span<const ListRow> rows, std::size_t width);

// Returns JSON: {"samples", "formats": [{...}], "settings": [{...}]}
std::string list_json(std::span<const ListRow> rows, std::size_t samples);

}  // namespace leeway::tools::codecs
