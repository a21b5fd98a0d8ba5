// `leeway codec inspect`: finds the magnitudes of a tensor, and the error of each format on them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codec/float_source.h"
#include "codec/magnitude_histogram.h"
#include "codec/packet_sample.h"
#include "estimate/lognormal.h"

namespace leeway::tools::codecs {

// Signal to noise ratios of one format in dB. A ratio is empty if the codec does not have that
// rounding, or if all values are 0.
struct FormatError {
  std::string codec;
  double bits = 0.0;
  std::optional<double> nearest;
  std::optional<double> stochastic;
  // The values that `nearest` and `stochastic` would have for lognormal data with the tensor's mean
  // and standard deviation of log2 of magnitudes.
  std::optional<double> nearest_predicted;
  std::optional<double> stochastic_predicted;
};

struct PruningPoint {
  double sparsity = 0.0;
  double threshold = 0.0;  // bound on |x|
  double cosine = 0.0;     // between the pruned tensor and the original
};

// The codec that Codec::automatic would choose for this tensor on a network without loss.
// `gradient_share` is the part of the tensor's mean square that is the true gradient; the rest is
// sampling noise of the rank.
struct AutomaticChoice {
  double gradient_share = 1.0;
  std::string codec;
};

struct InspectOptions {
  std::vector<double> sparsities;
  std::uint32_t ranks = 1;
};

struct Inspection {
  static constexpr std::size_t kSamplePackets = 2048;  // 16 MiB

  std::string path;
  estimate::LognormalFit fit;
  MagnitudeHistogram histogram;
  PacketSample sample{kSamplePackets};
  std::vector<FormatError> formats;   // fewest bits first
  std::vector<PruningPoint> pruning;  // no points if all magnitudes are equal
  std::uint32_t ranks = 1;            // ranks that average such contributions
  std::vector<AutomaticChoice> automatic;
};

// Called with a text for people about the work in progress, such as "reading 12 %".
using InspectProgress = std::function<void(const std::string& text)>;

// Reads the source to its end. Refuses an empty source.
Result<Inspection> inspect(FloatSource& source, const std::string& path,
                           const InspectOptions& options, const InspectProgress& progress);

// Returns the index of the format with the highest measured ratio among those of at most `bits`
// bits an element, or nullopt if there is none. `measured` chooses nearest or stochastic rounding.
std::optional<std::size_t> best_format(const std::vector<FormatError>& formats, double bits,
                                       std::optional<double> FormatError::*measured);

}  // namespace leeway::tools::codecs
