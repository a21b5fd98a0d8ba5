#include "compute/drop_compute.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "engine/fixed_point.h"
#include "support/time_units.h"

namespace leeway::sim {
namespace {

using testing::kMs;

double exact_weight(double level) {
  return std::exp(-std::pow(std::log(level) - 4, 2) / 2) / level;
}
double weight(std::size_t level) {
  const std::uint64_t before = level == 1 ? 0 : kDropComputeWeights[level - 2];
  return static_cast<double>(kDropComputeWeights[level - 1] - before) * 0x1p-60;
}

TEST(DropComputeWeights, AgreeWithTheMathematicsLibrary) {
  for (std::size_t level = 1; level <= kDropComputeLevels; ++level) {
    const double exact = exact_weight(static_cast<double>(level));
    ASSERT_NEAR(weight(level), exact, 4e-6 * exact) << level;
  }
}

TEST(DropComputeWeights, GiveAMultiplierOfMeanOneAndVariance135) {
  double total = 0;
  double mean = 0;
  double square = 0;
  for (std::size_t level = 1; level <= kDropComputeLevels; ++level) {
    const double multiplier = static_cast<double>(level) / 87.634;
    total += weight(level);
    mean += weight(level) * multiplier;
    square += weight(level) * multiplier * multiplier;
  }
  mean /= total;
  EXPECT_NEAR(mean, 1, 1e-5);
  EXPECT_NEAR(square / total - mean * mean, 1.35, 1e-4);
  EXPECT_NEAR(kDropComputeLevels / 87.634, 11.3996, 1e-4);
}

TEST(DropComputeLevel, FollowsTheWeights) {
  constexpr int kDraws = 400'000;
  RandomStream stream(1, 0, Purpose::compute);
  std::array<int, kDropComputeLevels + 1> count{};
  for (int i = 0; i < kDraws; ++i) ++count[drop_compute_level(stream)];
  EXPECT_EQ(count[0], 0);
  const double total = static_cast<double>(kDropComputeWeights.back()) * 0x1p-60;
  double chi_square = 0;
  for (std::size_t level = 1; level <= kDropComputeLevels; ++level) {
    const double expected = kDraws * weight(level) / total;
    chi_square += std::pow(count[level] - expected, 2) / expected;
  }
  // Chi-square has 998 degrees of freedom, so its deviation is sqrt(2 * 998) = 45.
  EXPECT_NEAR(chi_square, 998, 4 * 45);
}

std::int64_t step_of(const DropComputeNoise& noise, RandomStream& stream, std::uint64_t slow_f32) {
  std::array<std::int64_t, 12> latencies{};
  draw(noise, stream, slow_f32, latencies);
  return std::accumulate(latencies.begin(), latencies.end(), std::int64_t{0});
}

TEST(DropComputeDraw, OfAStepHasItsMeanAndVariance) {
  RandomStream stream(3, 0, Purpose::compute);
  const DropComputeNoise noise{10 * kMs, drop_compute_unit_f32(1)};
  constexpr int kDraws = 50'000;
  double sum = 0;
  double square = 0;
  for (int i = 0; i < kDraws; ++i) {
    const auto ms = static_cast<double>(step_of(noise, stream, kOneF32)) / kMs;
    sum += ms;
    square += ms * ms;
  }
  // There are 12 micro-batches of 10 ms, each longer by half of a multiplier with mean 1 and
  // variance 1.35.
  const double variance = 12 * 100 * 0.25 * 1.35;
  EXPECT_NEAR(sum / kDraws, 180, 4 * std::sqrt(variance / kDraws));
  EXPECT_NEAR(square / kDraws - std::pow(sum / kDraws, 2), variance, 0.05 * variance);
}

TEST(DropComputeMoments, AreThoseOfTheMultiplier) {
  const DropComputeMoments moments = drop_compute_moments(2);
  EXPECT_NEAR(moments.mean, 2, 1e-5);
  EXPECT_NEAR(moments.deviation * moments.deviation, 1.35, 1e-4);
  EXPECT_EQ(drop_compute_moments(0).mean, 1);
  EXPECT_EQ(drop_compute_moments(0).deviation, 0);
}

TEST(DropComputeDraw, OfASlowRankLastsLonger) {
  RandomStream stream(1, 0, Purpose::compute);
  RandomStream twin = stream;
  const DropComputeNoise noise{10 * kMs, drop_compute_unit_f32(1)};
  const auto usual = static_cast<double>(step_of(noise, stream, kOneF32));
  EXPECT_NEAR(static_cast<double>(step_of(noise, twin, 3 * kOneF32)), 3 * usual, 12);
}

TEST(DropComputeDraw, AddsHalfOfTheMultiplierTimesTheFactor) {
  RandomStream stream(7, 2, Purpose::compute);
  RandomStream twin = stream;
  const DropComputeNoise noise{10 * kMs, drop_compute_unit_f32(2)};
  std::array<std::int64_t, 1> latency{};
  draw(noise, stream, kOneF32, latency);
  const double expected = 10e6 * (1 + drop_compute_level(twin) / 87.634);
  EXPECT_NEAR(static_cast<double>(latency[0]), expected, 1);
}

}  // namespace
}  // namespace leeway::sim
