#include "link/quantile_table.h"

#include <algorithm>

namespace leeway::sim {
namespace {

using Knots = QuantileTable::Knots;
constexpr std::size_t kIntervals = QuantileTable::kIntervals;
constexpr std::int32_t kUnit = 1 << QuantileTable::kUnitBits;
constexpr std::int32_t kLimit = 4 * kUnit;

// Walks along the normal density from 0 in steps of h = kStep, by multiplication. With g(x) =
// exp(-x^2 / 2), g(x + h) / g(x) = exp(-h^2 / 2) exp(-h x), and this factor falls by exp(-h^2) per
// step. The trapezoid rule then gives the integral to 1e-8.
struct NormalWalk {
  static constexpr double kStep = 1.0 / 2048;
  static constexpr double kSquare = kStep * kStep;
  // exp(-x) for x of about 10^-7. The next term of the series is below rounding.
  static constexpr double exp_minus(double x) { return 1 - x + x * x / 2; }

  double x = 0;
  double density = 0.39894228040143268;  // 1 / sqrt(2 pi)
  double ratio = exp_minus(kSquare / 2);
  double below = 0.5;  // share below x
  double next_below = 0.5 + kStep / 2 * density * (1 + ratio);

  constexpr void step() {
    x += kStep;
    density *= ratio;
    ratio *= exp_minus(kSquare);
    below = next_below;
    next_below += kStep / 2 * density * (1 + ratio);
  }
};

constexpr Knots make_normal() {
  Knots knots{};
  NormalWalk walk;
  for (std::size_t i = kIntervals / 2; i < kIntervals; ++i) {
    const double share = static_cast<double>(i) / kIntervals;
    while (walk.next_below < share) walk.step();
    const double part = (share - walk.below) / (walk.next_below - walk.below);
    knots[i] = static_cast<std::int32_t>((walk.x + part * NormalWalk::kStep) * kUnit + 0.5);
    knots[kIntervals - i] = -knots[i];
  }
  knots[kIntervals] = kLimit;
  knots[0] = -kLimit;
  return knots;
}

// Returns the greatest r with r^3 <= n, for r from 2^17 to 2^20, by Newton's method from above.
constexpr std::uint64_t floor_cube_root(std::uint64_t n) {
  std::uint64_t root = std::uint64_t{1} << 21;
  for (;;) {
    const std::uint64_t better = (2 * root + n / (root * root)) / 3;
    if (better >= root) return root;
    root = better;
  }
}

// The Pareto law has the quantile (1 - share)^(-1/3) for a share of 0 to 1. It is computed in units
// of 2^-17, so that its cube fits 64 bits.
constexpr Knots make_pareto() {
  Knots knots{};
  for (std::size_t i = 0; i < kIntervals; ++i) {
    const std::uint64_t cube = (std::uint64_t{1} << 63) / (kIntervals - i);
    const auto root = static_cast<std::int64_t>(floor_cube_root(cube));
    const std::int64_t shape = (2 * root - 3 * (1 << 17)) * 16 / 3;
    knots[i] = static_cast<std::int32_t>(std::min<std::int64_t>(shape, kLimit));
  }
  knots[kIntervals] = kLimit;
  return knots;
}

constexpr Knots make_paretonormal() {
  const Knots normal = make_normal();
  Knots knots = make_pareto();
  for (std::size_t i = 0; i <= kIntervals; ++i) knots[i] = (normal[i] + 3 * knots[i]) / 4;
  return knots;
}

constexpr QuantileTable kNormal(make_normal());
constexpr QuantileTable kPareto(make_pareto());
constexpr QuantileTable kParetonormal(make_paretonormal());

}  // namespace

const QuantileTable& normal_quantiles() {
  return kNormal;
}
const QuantileTable& pareto_quantiles() {
  return kPareto;
}
const QuantileTable& paretonormal_quantiles() {
  return kParetonormal;
}

}  // namespace leeway::sim
