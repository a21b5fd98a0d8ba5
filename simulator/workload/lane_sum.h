// Sums doubles in a fixed order that compilers can vectorise. There are eight running sums, one for
// each index modulo 8, which are added from first to last at the end.
#pragma once

#include <array>
#include <cstddef>

namespace leeway::sim {

// Returns term(0) + ... + term(count - 1).
template <typename Term>
double lane_sum(std::size_t count, Term&& term) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) lanes[lane] += term(i);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace leeway::sim
