#include "engine/geometric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace leeway::sim {
namespace {

// Computes q^k by repeated multiplication, for comparison with powers of two.
std::uint64_t slow_power(Probability success, int k) {
  std::uint64_t power = kOneF63;
  for (int i = 0; i < k; ++i) power = multiply_f63(power, success.complement().f63());
  return power;
}

TEST(GeometricDistance, GivesTheGoldenDraws) {
  RandomStream stream(1, 2, Purpose::loss);
  const GeometricDistance distance(Probability::of(0.001));
  for (const unsigned golden : {742u, 69u, 160u, 447u}) EXPECT_EQ(distance.draw(stream), golden);
}

TEST(GeometricDistanceInvert, StepsWhereThePowersOfTheFailureRateLie) {
  for (const double p : {0.01, 0.3, 0.5, 0.9}) {
    const Probability success = Probability::of(p);
    const GeometricDistance distance(success);
    for (int k = 0; k < 60; ++k) {
      const std::uint64_t power = slow_power(success, k + 1);
      constexpr std::uint64_t kRounding = 64;
      if (power <= kRounding) break;
      EXPECT_GT(distance.invert(power - kRounding), static_cast<std::uint64_t>(k)) << p;
      EXPECT_LE(distance.invert(power + kRounding), static_cast<std::uint64_t>(k)) << p;
    }
  }
}

TEST(GeometricDistanceInvert, IsExactForFairCoins) {
  const GeometricDistance distance(Probability::of(0.5));
  for (std::uint64_t k = 0; k < 63; ++k) {
    EXPECT_EQ(distance.invert((kOneF63 >> k) - 1), k == 63 ? 62 : k) << k;
    EXPECT_EQ(distance.invert(kOneF63 >> (k + 1)), k) << k;
  }
}

TEST(GeometricDistanceInvert, FollowsTheLogarithmForRareSuccesses) {
  for (const double p : {1e-6, 1e-9, 1e-12}) {
    const GeometricDistance distance(Probability::of(p));
    for (const double u : {0.9, 0.5, 0.01, 1e-9, 1e-15}) {
      const double k = static_cast<double>(distance.invert(static_cast<std::uint64_t>(u * 0x1p63)));
      const double exact = std::log(u) / std::log1p(-p);
      // The error has two parts: from rounding the rate, and from comparing q^k with u.
      const double rounding = exact * 0x1p-62 / p + 4 * 0x1p-63 / (u * p);
      EXPECT_NEAR(k, exact, 1 + rounding) << p << " " << u;
    }
  }
}

TEST(GeometricDistanceDraw, HasTheMeanAndSpreadOfTheLaw) {
  constexpr int kDraws = 100'000;
  for (const double p : {0.001, 0.02, 0.4, 0.95}) {
    RandomStream stream(3, 0, Purpose::loss);
    const GeometricDistance distance(Probability::of(p));
    const double q = 1 - p;
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const auto k = static_cast<double>(distance.draw(stream)) - q / p;
      sum += k;
      squares += k * k;
    }
    const double variance = q / (p * p);
    EXPECT_NEAR(sum / kDraws, 0, 4 * std::sqrt(variance / kDraws)) << p;
    // The law has the excess kurtosis 6 + p^2 / q.
    const double deviation = variance * std::sqrt((8 + p * p / q) / kDraws);
    EXPECT_NEAR(squares / kDraws, variance, 4 * deviation) << p;
  }
}

TEST(GeometricDistanceDraw, HasTheLawsFrequencies) {
  constexpr int kDraws = 200'000;
  const double p = 0.3;
  RandomStream stream(4, 0, Purpose::loss);
  const GeometricDistance distance(Probability::of(p));
  std::vector<int> counts(12);
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t k = distance.draw(stream);
    if (k < counts.size()) ++counts[k];
  }
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const double expected = kDraws * p * std::pow(1 - p, static_cast<double>(k));
    EXPECT_NEAR(counts[k], expected, 4 * std::sqrt(expected)) << k;
  }
}

TEST(GeometricDistanceDraw, IsZeroForCertainSuccessAndEndlessForNone) {
  RandomStream stream(5, 0, Purpose::loss);
  const GeometricDistance always(Probability::always());
  const GeometricDistance never(Probability::never());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(always.draw(stream), 0u);
    EXPECT_EQ(never.draw(stream), GeometricDistance::kNever);
  }
}

TEST(GeometricDistanceDraw, StaysInRangeForTheRarestSuccess) {
  const GeometricDistance distance(Probability::of_f63(1));
  EXPECT_EQ(distance.invert(0), (std::uint64_t{1} << 63) - 1);
  EXPECT_EQ(distance.invert(kOneF63 - 1), 0u);
}

}  // namespace
}  // namespace leeway::sim
