#include "link/quantile_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace leeway::sim {
namespace {

constexpr double kUnit = 1 << QuantileTable::kUnitBits;

// Returns the table's value at share i / 4096, which is a knot.
double knot(const QuantileTable& table, std::uint32_t i) {
  return static_cast<double>(table.at(i << 20)) / kUnit;
}

double pareto(double share) {
  return (1 / std::cbrt(1 - share) - 1.5) * 4 / 3;
}

TEST(NormalQuantiles, InvertTheNormalDistribution) {
  for (std::uint32_t i = 1; i < 4096; ++i) {
    const double share = 0.5 * std::erfc(-knot(normal_quantiles(), i) / std::sqrt(2.0));
    ASSERT_NEAR(share, i / 4096.0, 5e-7) << i;
  }
}

TEST(NormalQuantiles, EndFourDeviationsOut) {
  EXPECT_EQ(knot(normal_quantiles(), 0), -4.0);
  EXPECT_NEAR(static_cast<double>(normal_quantiles().at(UINT32_MAX)) / kUnit, 4.0, 1e-5);
}

TEST(ParetoQuantiles, FollowTheParetoLawUpToFour) {
  for (std::uint32_t i = 0; i < 4096; ++i) {
    ASSERT_NEAR(knot(pareto_quantiles(), i), std::min(pareto(i / 4096.0), 4.0), 1.1e-5) << i;
  }
}

TEST(ParetonormalQuantiles, AreAQuarterNormalAndThreeQuartersPareto) {
  for (std::uint32_t i = 0; i < 4096; ++i) {
    ASSERT_NEAR(knot(paretonormal_quantiles(), i),
                (knot(normal_quantiles(), i) + 3 * knot(pareto_quantiles(), i)) / 4, 2e-6);
  }
}

TEST(QuantileTable, InterpolatesBetweenKnots) {
  const QuantileTable& table = normal_quantiles();
  const std::int64_t left = table.at(3000u << 20), right = table.at(3001u << 20);
  EXPECT_NEAR(static_cast<double>(table.at((3000u << 20) + (1u << 18))),
              static_cast<double>(left) + static_cast<double>(right - left) / 4, 1.0);
}

// Compares the moments of 2^20 evenly spaced draws with those that the header states.
TEST(QuantileTable, HasTheStatedMoments) {
  const auto check = [](const QuantileTable& table, double mean, double deviation) {
    constexpr int kDraws = 1 << 20;
    double sum = 0, squares = 0;
    for (std::uint32_t i = 0; i < kDraws; ++i) {
      const double value = static_cast<double>(table.at(i << 12 | 1u << 11)) / kUnit;
      sum += value;
      squares += value * value;
    }
    sum /= kDraws;
    EXPECT_NEAR(sum, mean, 1e-4);
    EXPECT_NEAR(std::sqrt(squares / kDraws - sum * sum), deviation, 1e-4);
  };
  check(normal_quantiles(), 0, 1);
  check(pareto_quantiles(), -0.0329, 0.8209);
  check(paretonormal_quantiles(), -0.0247, 0.8350);
}

}  // namespace
}  // namespace leeway::sim
