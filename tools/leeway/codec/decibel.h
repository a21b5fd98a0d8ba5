// Formats a signal to noise ratio in dB. It may be infinite (no error) or absent (not applicable).
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "format.h"

namespace leeway::tools::codecs {

// Returns a cell of a table: "20.43", "exact" or "-".
inline std::string decibel_cell(const std::optional<double>& decibel) {
  if (!decibel) return "-";
  return std::isinf(*decibel) ? "exact" : format("%.2f", *decibel);
}

// JSON has no infinity, so the text "exact" stands for it. Null stands for a value that is absent.
inline nlohmann::ordered_json decibel_json(const std::optional<double>& decibel) {
  if (!decibel) return nullptr;
  if (std::isinf(*decibel)) return "exact";
  return *decibel;
}

}  // namespace leeway::tools::codecs
