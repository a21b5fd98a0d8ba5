#include "engine/variates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace leeway::sim {
namespace {

constexpr std::int64_t kMs = 1'000'000;

std::vector<double> sorted_draws(int count, const std::function<std::int64_t()>& draw) {
  std::vector<double> draws;
  for (int i = 0; i < count; ++i) draws.push_back(static_cast<double>(draw()));
  std::sort(draws.begin(), draws.end());
  return draws;
}

// Returns the Kolmogorov-Smirnov distance between a sorted sample and a distribution, times
// sqrt(n). It is above 2.2 with probability 2 exp(-2 * 2.2^2) = 1.2e-4, which is 3.8 sigma.
double distance(const std::vector<double>& sorted, const std::function<double(double)>& law) {
  const auto n = static_cast<double>(sorted.size());
  double most = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double p = law(sorted[i]);
    const auto rank = static_cast<double>(i);
    most = std::max({most, p - rank / n, (rank + 1) / n - p});
  }
  return most * std::sqrt(n);
}
constexpr double kFarthest = 2.2;
constexpr int kDraws = 200'000;

double normal_law(double z) {
  return std::erfc(-z / std::sqrt(2.0)) / 2;
}

// The values are those of 60-digit arithmetic on the same Philox words, but for the stated errors.
TEST(Variates, GiveTheGoldenDraws) {
  RandomStream stream(1, 2, Purpose::compute);
  EXPECT_EQ(exponential(stream, kMs), 2'590'748);
  EXPECT_EQ(pareto(stream, kMs, kOneF32 / 3), 1'066'115);
  EXPECT_EQ(standard_normal_f32(stream), 144'461'616);
  EXPECT_EQ(normal(stream, 45 * kMs, 3 * kMs), 43'687'115);
  EXPECT_EQ(lognormal(stream, kMs, kOneF32 / 2), 950'613);
}

TEST(Exponential, FollowsItsLaw) {
  RandomStream stream(2, 0, Purpose::delay);
  const auto draws = sorted_draws(kDraws, [&] { return exponential(stream, kMs); });
  EXPECT_LT(distance(draws, [](double ns) { return -std::expm1(-ns / kMs); }), kFarthest);
  double sum = 0;
  for (const double ns : draws) sum += ns;
  EXPECT_NEAR(sum / kDraws, kMs, 4 * kMs / std::sqrt(kDraws));
}

TEST(Exponential, IsRoundedToTheNearestNanosecond) {
  RandomStream stream(14, 0, Purpose::delay);
  int zeros = 0;
  for (int i = 0; i < kDraws; ++i) zeros += exponential(stream, 1) == 0;
  const double p = -std::expm1(-0.5);
  EXPECT_NEAR(zeros, kDraws * p, 4 * std::sqrt(kDraws * p * (1 - p)));
}

// A table of 4096 quantiles would end at 9 times the mean. This counts the draws beyond that.
TEST(Exponential, KeepsItsTail) {
  RandomStream stream(3, 0, Purpose::delay);
  constexpr int kMany = 1'000'000;
  int beyond = 0;
  for (int i = 0; i < kMany; ++i) beyond += exponential(stream, kMs) > 9 * kMs;
  const double expected = kMany * std::exp(-9.0);
  EXPECT_NEAR(beyond, expected, 4 * std::sqrt(expected));
}

TEST(Exponential, OfMeanZeroIsZeroAndOfTheLongestStaysInRange) {
  RandomStream stream(4, 0, Purpose::delay);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(exponential(stream, 0), 0);
    const std::int64_t ns = exponential(stream, kLongestNs);
    ASSERT_GE(ns, 0);
    ASSERT_LE(ns, kLongestNs);
  }
}

TEST(Pareto, FollowsItsLaw) {
  for (const double shape : {0.5, 1.5, 3.0}) {
    RandomStream stream(5, 0, Purpose::delay);
    const auto draws = sorted_draws(kDraws, [&] { return pareto(stream, kMs, to_f32(1 / shape)); });
    const auto law = [&](double ns) { return 1 - std::pow(ns / kMs, -shape); };
    EXPECT_LT(distance(draws, law), kFarthest) << shape;
    EXPECT_GE(draws.front(), kMs);
  }
}

TEST(Pareto, IsItsMinimumWithoutATailAndStopsAtTheLongestTime) {
  RandomStream stream(6, 0, Purpose::delay);
  std::int64_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(pareto(stream, 12345, 0), 12345);
    most = std::max(most, pareto(stream, 12345, kLargestFactorF32));
  }
  EXPECT_EQ(most, kLongestNs);
}

TEST(StandardNormal, FollowsItsLaw) {
  RandomStream stream(7, 0, Purpose::delay);
  const auto draws = sorted_draws(kDraws, [&] { return standard_normal_f32(stream); });
  EXPECT_LT(distance(draws, [](double z) { return normal_law(z * 0x1p-32); }), kFarthest);
  double sum = 0;
  double squares = 0;
  for (const double z : draws) {
    sum += z * 0x1p-32;
    squares += z * z * 0x1p-64;
  }
  EXPECT_NEAR(sum / kDraws, 0, 4 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 4 * std::sqrt(2.0 / kDraws));
}

TEST(StandardNormal, KeepsBothTails) {
  RandomStream stream(8, 0, Purpose::delay);
  constexpr int kMany = 1'000'000;
  int above = 0;
  int below = 0;
  for (int i = 0; i < kMany; ++i) {
    const double z = static_cast<double>(standard_normal_f32(stream)) * 0x1p-32;
    above += z > 3.7;
    below += z < -3.7;
  }
  const double expected = kMany * normal_law(-3.7);
  EXPECT_NEAR(above, expected, 4 * std::sqrt(expected));
  EXPECT_NEAR(below, expected, 4 * std::sqrt(expected));
}

TEST(Normal, IsTheStandardOneScaledAndMoved) {
  RandomStream stream(9, 0, Purpose::delay);
  RandomStream same(9, 0, Purpose::delay);
  for (int i = 0; i < 10'000; ++i) {
    const double z = static_cast<double>(standard_normal_f32(same)) * 0x1p-32;
    ASSERT_NEAR(static_cast<double>(normal(stream, -5 * kMs, 3 * kMs)), -5.0 * kMs + z * 3 * kMs,
                0.51);
  }
}

TEST(Normal, WithoutDeviationIsItsMean) {
  RandomStream stream(10, 0, Purpose::delay);
  EXPECT_EQ(normal(stream, -77, 0), -77);
  EXPECT_EQ(normal(stream, kLongestNs, 0), kLongestNs);
}

TEST(Lognormal, FollowsItsLaw) {
  for (const double sigma : {0.1, 0.5, 2.0}) {
    RandomStream stream(11, 0, Purpose::compute);
    const auto draws =
        sorted_draws(kDraws, [&] { return lognormal(stream, 100 * kMs, to_f32(sigma)); });
    const auto law = [&](double ns) { return normal_law(std::log(ns / (100.0 * kMs)) / sigma); };
    EXPECT_LT(distance(draws, law), kFarthest) << sigma;
  }
}

TEST(Lognormal, IsItsMedianWithoutSpreadAndStaysInRangeWithTheMost) {
  RandomStream stream(12, 0, Purpose::compute);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(lognormal(stream, 999, 0), 999);
    const std::int64_t ns = lognormal(stream, kLongestNs, kLargestFactorF32);
    ASSERT_GE(ns, 0);
    ASSERT_LE(ns, kLongestNs);
  }
}

TEST(VariatesDeathTest, RefuseParametersOutOfRange) {
  RandomStream stream(13, 0, Purpose::delay);
  EXPECT_DEATH(exponential(stream, -1), "contract broken");
  EXPECT_DEATH(exponential(stream, kLongestNs + 1), "contract broken");
  EXPECT_DEATH(pareto(stream, 1, kLargestFactorF32 + 1), "contract broken");
  EXPECT_DEATH(normal(stream, 1, -1), "contract broken");
  EXPECT_DEATH(lognormal(stream, 1, kLargestFactorF32 + 1), "contract broken");
}

}  // namespace
}  // namespace leeway::sim
