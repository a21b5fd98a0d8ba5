#include "compute/drop_compute.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "engine/fixed_point.h"

namespace leeway::sim {
namespace {

constexpr std::int64_t kMs = 1'000'000;

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
  // 998 degrees of freedom: deviation sqrt(2 * 998) = 45.
  EXPECT_NEAR(chi_square, 998, 4 * 45);
}

TEST(DropComputeDraw, WithoutThresholdComputesEverything) {
  RandomStream stream(3, 0, Purpose::compute);
  const DropComputeNoise noise{10 * kMs, 12, drop_compute_unit_f32(1), 0};
  constexpr int kDraws = 50'000;
  double sum = 0;
  double square = 0;
  for (int i = 0; i < kDraws; ++i) {
    const DropComputeDraw drawn = draw(noise, stream, kOneF32);
    ASSERT_EQ(drawn.completed, 12u);
    sum += static_cast<double>(drawn.ns) / kMs;
    square += std::pow(static_cast<double>(drawn.ns) / kMs, 2);
  }
  // 12 micro-batches of 10 ms, each prolonged by half of a multiplier of mean 1, variance 1.35.
  const double variance = 12 * 100 * 0.25 * 1.35;
  EXPECT_NEAR(sum / kDraws, 180, 4 * std::sqrt(variance / kDraws));
  EXPECT_NEAR(square / kDraws - std::pow(sum / kDraws, 2), variance, 0.05 * variance);
}

TEST(DropComputeDraw, StopsAfterTheMicroBatchThatPassesTheThreshold) {
  RandomStream stream(1, 0, Purpose::compute);
  // Without noise: 10, 20, 30, 40 ms.
  const DropComputeNoise noise{10 * kMs, 12, 0, 35 * kMs};
  const DropComputeDraw drawn = draw(noise, stream, kOneF32);
  EXPECT_EQ(drawn.completed, 4u);
  EXPECT_EQ(drawn.ns, 40 * kMs);
}

TEST(DropComputeDraw, ThatLastsJustAsLongAsTheThresholdGoesOn) {
  RandomStream stream(1, 0, Purpose::compute);
  const DropComputeNoise noise{10 * kMs, 12, 0, 30 * kMs};
  EXPECT_EQ(draw(noise, stream, kOneF32).completed, 4u);
}

TEST(DropComputeDraw, OfASlowRankDropsMore) {
  RandomStream stream(1, 0, Purpose::compute);
  const DropComputeNoise noise{10 * kMs, 12, 0, 60 * kMs};
  const DropComputeDraw drawn = draw(noise, stream, 3 * kOneF32);
  EXPECT_EQ(drawn.completed, 3u);
  EXPECT_EQ(drawn.ns, 90 * kMs);
}

TEST(DropComputeDraw, AddsHalfOfTheMultiplierTimesTheFactor) {
  RandomStream stream(7, 2, Purpose::compute);
  RandomStream twin = stream;
  const DropComputeNoise noise{10 * kMs, 1, drop_compute_unit_f32(2), 0};
  const double expected = 10e6 * (1 + drop_compute_level(twin) / 87.634);
  EXPECT_NEAR(static_cast<double>(draw(noise, stream, kOneF32).ns), expected, 1);
}

}  // namespace
}  // namespace leeway::sim
