// Quantile tables of netem's delay distributions. They are computed at compile time, so that no run
// depends on a library's logarithm or root.
//
// The value of a shape is multiplied by the jitter and added to the delay. As in iproute2's tables
// (from NISTnet):
//   normal        mean 0, deviation 1
//   pareto        (x - 3/2) 4/3 for a Pareto variable x with minimum 1 and exponent 3
//   paretonormal  1/4 normal + 3/4 pareto, both at the same quantile
// All values are cut at 4. That cuts the Pareto tail: pareto has mean -0.033 and deviation 0.82,
// paretonormal -0.025 and 0.83.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace leeway::sim {

class QuantileTable {
 public:
  static constexpr std::size_t kIntervals = 4096;  // netem's table has 4096 entries as well
  static constexpr int kUnitBits = 20;             // a value of 1 is 2^20
  using Knots = std::array<std::int32_t, kIntervals + 1>;

  constexpr explicit QuantileTable(const Knots& knots) : knots_(knots) {}

  // Returns the quantile of u / 2^32, interpolated linearly.
  constexpr std::int64_t at(std::uint32_t u) const {
    constexpr int kRestBits = 20;
    const std::size_t i = u >> kRestBits;
    const std::int64_t rest = u & ((1u << kRestBits) - 1);
    const std::int64_t step = std::int64_t{knots_[i + 1]} - knots_[i];
    return knots_[i] + (step * rest >> kRestBits);
  }

 private:
  Knots knots_;
};

const QuantileTable& normal_quantiles();
const QuantileTable& pareto_quantiles();
const QuantileTable& paretonormal_quantiles();

}  // namespace leeway::sim
