// Sums of many doubles in a stated order that compilers can vectorise: eight running sums, one for
// each residue of the index modulo 8, added from the first to the last at the end.
#pragma once

#include <array>
#include <cstddef>

namespace leeway::sim {

// term(0) + ... + term(count - 1).
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
