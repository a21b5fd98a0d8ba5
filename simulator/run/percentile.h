// How percentiles are computed, for measures of one run and for measures pooled over runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace leeway::sim {

// Stands for a figure that was not measured. Reports show it as unknown.
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Returns the nearest-rank percentile: the smallest value v for which at least `thousandths` / 1000
// of all values are <= v. The result is one of the values, so it is the same on every machine.
// Returns kUnknown if there are no values.
inline double percentile(std::span<const double> ascending, unsigned thousandths) {
  if (ascending.empty()) return kUnknown;
  const std::size_t rank = (ascending.size() * thousandths + 999) / 1000;
  return ascending[std::clamp<std::size_t>(rank, 1, ascending.size()) - 1];
}

}  // namespace leeway::sim
