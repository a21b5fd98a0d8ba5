// Sums and multiples of times. They saturate at kLongestNs instead of overflowing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/fixed_point.h"
#include "engine/variates.h"

namespace leeway::sim {

// Both times must lie in 0 .. kLongestNs.
constexpr std::int64_t sum_of_times(std::int64_t a_ns, std::int64_t b_ns) {
  return std::min(a_ns + b_ns, kLongestNs);
}

// Returns `ns` * factor, rounded to the nearest ns. `factor_f32` is the factor times 2^32.
constexpr std::int64_t scaled_time(std::int64_t ns, std::uint64_t factor_f32) {
  const Wide product = (Wide{static_cast<std::uint64_t>(ns)} * factor_f32 + (kOneF32 >> 1)) >> 32;
  return product < static_cast<std::uint64_t>(kLongestNs) ? static_cast<std::int64_t>(product)
                                                          : kLongestNs;
}

}  // namespace leeway::sim
