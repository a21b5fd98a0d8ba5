// Decibels that may be infinite (nothing was changed) or absent (not applicable), for people and
// for programs.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "format.h"

namespace leeway::tools::codecs {

// "20.43", "exact" or "-".
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
