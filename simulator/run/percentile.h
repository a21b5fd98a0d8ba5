// The definition of percentiles, which measures of a run and those pooled over runs share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace leeway::sim {

// Value of a figure that was not measured. It is shown as unknown, and never as a number.
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Nearest-rank percentile: the least value such that at least `thousandths` of all values do not
// exceed it. kUnknown without values. It is a value that occurred, and the same on every machine.
inline double percentile(std::span<const double> ascending, unsigned thousandths) {
  if (ascending.empty()) return kUnknown;
  const std::size_t rank = (ascending.size() * thousandths + 999) / 1000;
  return ascending[std::clamp<std::size_t>(rank, 1, ascending.size()) - 1];
}

}  // namespace leeway::sim
