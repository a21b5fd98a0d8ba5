#include "estimate/lognormal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <span>
#include <vector>

namespace leeway::estimate {
namespace {

std::vector<float> lognormal(double mean_log2, double sigma_log2, std::size_t count) {
  std::mt19937 random(7);
  std::normal_distribution<double> log2(mean_log2, sigma_log2);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(std::exp2(log2(random)) * (random() % 2 == 0 ? 1 : -1));
  }
  return values;
}

TEST(LognormalFitAdd, MeasuresMeanAndSpread) {
  constexpr std::size_t kCount = 40000;
  LognormalFit fit;
  fit.add(lognormal(-9.0, 2.5, kCount));
  // The tolerances are 4 standard errors, sigma/sqrt(n) and sigma/sqrt(2n).
  EXPECT_NEAR(fit.mean_log2(), -9.0, 4 * 2.5 / std::sqrt(kCount));
  EXPECT_NEAR(fit.sigma_log2(), 2.5, 4 * 2.5 / std::sqrt(2.0 * kCount));
  EXPECT_EQ(fit.count(), kCount);
}

TEST(LognormalFitAdd, TakesLogarithmsToSevenDigits) {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x7F7FFFFF + 1));
    LognormalFit fit;
    fit.add({&value, 1});
    ASSERT_NEAR(fit.mean_log2(), std::log2(static_cast<double>(value)), 2e-7) << value;
    ASSERT_DOUBLE_EQ(fit.mean_square(), static_cast<double>(value) * value) << value;
  }
}

TEST(LognormalFitAdd, OnlyCountsWhatHasNoLogarithm) {
  const float values[] = {0.0f,
                          -0.0f,
                          4.0f,
                          -4.0f,
                          std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()};
  LognormalFit fit;
  fit.add(values);
  EXPECT_EQ(fit.count(), 6);
  EXPECT_EQ(fit.zeros(), 2);
  EXPECT_EQ(fit.non_finite(), 2);
  EXPECT_EQ(fit.mean_log2(), 2.0);
  EXPECT_EQ(fit.sigma_log2(), 0.0);
  EXPECT_EQ(fit.mean_square(), 8.0);  // 16, 16, 0, 0
}

TEST(LognormalFitAdd, OfNothingIsZero) {
  const LognormalFit fit;
  EXPECT_EQ(fit.mean_log2(), 0.0);
  EXPECT_EQ(fit.sigma_log2(), 0.0);
  EXPECT_EQ(fit.mean_square(), 0.0);
}

TEST(LognormalFitSums, OfTwoRanksAddUp) {
  const std::vector<float> values = lognormal(3.0, 1.0, 1000);
  LognormalFit whole, first, second;
  whole.add(values);
  first.add(std::span(values).first(300));
  second.add(std::span(values).subspan(300));
  std::array<double, LognormalFit::kSums> sums = first.sums();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += second.sums()[i];
  const LognormalFit merged(sums);
  EXPECT_EQ(merged.count(), whole.count());
  EXPECT_NEAR(merged.mean_log2(), whole.mean_log2(), 1e-12);
  EXPECT_NEAR(merged.sigma_log2(), whole.sigma_log2(), 1e-12);
  EXPECT_NEAR(merged.mean_square(), whole.mean_square(), 1e-9 * whole.mean_square());
}

struct PruningRow {
  double s, sparsity, threshold, cosine;
};
constexpr PruningRow kPruning[] = {{1, .5, 2.40079, .948771},  {1, .8, 7.82227, .712628},
                                   {1, .85, 10.6871, .627852}, {2, .8, 16.9889, .996572},
                                   {2, .85, 26.692, .992758},  {2, .9, 47.6571, .982215}};

TEST(LognormalPruningThreshold, HasTheCheckedValues) {
  for (const PruningRow& row : kPruning) {
    const LognormalPruning pruning{.s = row.s};
    const double threshold = pruning.threshold(row.sparsity);
    EXPECT_NEAR(threshold, row.threshold, 0.6e-5 * row.threshold);
    EXPECT_NEAR(pruning.cosine(threshold), row.cosine, 0.6e-6);
  }
  const LognormalPruning wide{.s = 3.0};
  EXPECT_NEAR(wide.threshold(.85), 71.1361, 0.6e-4);
  EXPECT_NEAR(wide.threshold(.9), 157.105, 0.6e-3);
}

TEST(LognormalPruningThreshold, PrunesWhatWasAskedFor) {
  for (const double s : {0.05, 0.7, 3.0, 12.0}) {
    for (const double sparsity : {1e-3, 0.3, 0.85, 0.999}) {
      const LognormalPruning pruning{.mu = -4.0, .s = s};
      EXPECT_NEAR(pruning.pruned_fraction(pruning.threshold(sparsity)), sparsity, 1e-9);
    }
  }
}

TEST(LognormalPruningThreshold, ScalesWithTheMedian) {
  const double shifted = LognormalPruning{.mu = 5.0, .s = 1.0}.threshold(.5);
  EXPECT_NEAR(shifted / LognormalPruning{.s = 1.0}.threshold(.5), std::exp(5.0), 1e-8);
}

// Uses the drawn values, but sums exactly over the pruning's own randomness.
TEST(LognormalPruningCosine, AgreesWithPruningALargeVector) {
  constexpr std::size_t kCount = 200000;
  const LognormalPruning pruning{.mu = 0.0, .s = 1.0};
  const double threshold = pruning.threshold(0.6);
  double zeros = 0.0, square = 0.0, pruned_square = 0.0;
  for (const float value : lognormal(0.0, 1.0 / std::numbers::ln2, kCount)) {
    const double size = std::abs(static_cast<double>(value));
    const double stays = std::min(1.0, size / threshold);
    zeros += 1.0 - stays;
    square += size * size;
    pruned_square += size * std::max(size, threshold);
  }
  EXPECT_NEAR(zeros / kCount, 0.6, 4 * 0.5 / std::sqrt(kCount));
  // E[x^2] of a lognormal has a relative error of sqrt((e^4 - 1)/n) = 1.6 %, most of which both
  // sums share.
  EXPECT_NEAR(std::sqrt(square / pruned_square), pruning.cosine(threshold), 0.015);
}

TEST(LognormalPruningCosine, IsOneWithoutAThreshold) {
  EXPECT_EQ(LognormalPruning{}.cosine(0.0), 1.0);
  EXPECT_EQ(LognormalPruning{}.pruned_fraction(0.0), 0.0);
}

}  // namespace
}  // namespace leeway::estimate
