// Compares the meter with the definitions written out, and tests values that might mislead it.
#include "estimate/drift_meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.h"

namespace leeway::estimate {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(DriftMeterSample, IsTheMeanSquareOverAllPairsAndOverAllReceivers) {
  const std::vector<float> values = {1.0f, 4.0f, -2.0f, 3.5f, 0.25f};
  const Rank owner = 2;
  double pair = 0.0;
  double to_owner = 0.0;
  int pairs = 0;
  for (std::size_t a = 0; a < values.size(); ++a) {
    if (a == owner) continue;
    to_owner += std::pow(values[a] - values[owner], 2) / 4;
    for (std::size_t b = a + 1; b < values.size(); ++b) {
      if (b == owner) continue;
      pair += std::pow(values[a] - values[b], 2);
      ++pairs;
    }
  }
  DriftMeter meter(0, 2);
  meter.add_sample(values, owner);
  EXPECT_NEAR(meter.result().pair, pair / pairs, 1e-12);
  EXPECT_NEAR(meter.result().owner, to_owner, 1e-12);
}

TEST(DriftMeterSample, AveragesOverSamples) {
  DriftMeter meter(0, 2);
  meter.add_sample(std::vector<float>{0, 1, 3}, 0);
  meter.add_sample(std::vector<float>{0, 0, 0}, 1);
  EXPECT_EQ(meter.result().pair, 2.0);
  EXPECT_EQ(meter.result().owner, 2.5);
  EXPECT_EQ(meter.result().samples, 2u);
}

TEST(DriftMeterSample, OfEqualReplicasIsExactlyZero) {
  DriftMeter meter(0, 2);
  meter.add_sample(std::vector<float>(7, 0.1f), 3);
  EXPECT_EQ(meter.result().pair, 0.0);
  EXPECT_EQ(meter.result().owner, 0.0);
}

TEST(DriftMeterSample, KeepsSmallDifferencesOfLargeValues) {
  DriftMeter meter(0, 2);
  meter.add_sample(std::vector<float>{8388608.0f, 8388609.0f, 8388610.0f}, 0);
  EXPECT_EQ(meter.result().pair, 1.0);
  EXPECT_EQ(meter.result().owner, 2.5);
}

TEST(DriftMeterSample, WithTwoRanksThereIsNoPair) {
  DriftMeter meter(0, 2);
  meter.add_sample(std::vector<float>{1, 3}, 1);
  EXPECT_EQ(meter.result().pair, 0.0);
  EXPECT_EQ(meter.result().owner, 4.0);
}

TEST(DriftMeterSample, WithOneRankThereIsNothingToCompare) {
  DriftMeter meter(0, 2);
  meter.add_sample(std::vector<float>{1}, 0);
  EXPECT_EQ(meter.result().samples, 0u);
  EXPECT_EQ(meter.result().owner, 0.0);
}

TEST(DriftMeterSample, SkipsValuesThatAreNoNumbers) {
  DriftMeter meter(0, 2);
  meter.add_sample(std::vector<float>{0, kNan, 1}, 0);
  meter.add_sample(std::vector<float>{std::numeric_limits<float>::infinity(), 0, 1}, 0);
  meter.add_sample(std::vector<float>{0, 2, 2}, 0);
  EXPECT_EQ(meter.result().samples, 1u);
  EXPECT_EQ(meter.result().owner, 4.0);
}

TEST(DriftMeterStep, SplitsTheMeanSquareStepExactly) {
  // One window of K = 3 steps has the mean m = 2 and the variance v = 1. So s^2 = v = 1 and u^2 =
  // m^2 - v/K = 4 - 1/3; together they make the mean square 14/3.
  DriftMeter meter(1, 3);
  for (const float delta : {1.0f, 2.0f, 3.0f}) meter.add_step({&delta, 1});
  EXPECT_NEAR(meter.result().step_variance, 1.0, 1e-12);
  EXPECT_NEAR(meter.result().step_mean_square, 4.0 - 1.0 / 3, 1e-12);
}

TEST(DriftMeterStep, CountsClosedWindowsOnly) {
  DriftMeter meter(1, 2);
  const float first = 1.0f, second = 3.0f, third = 100.0f;
  meter.add_step({&first, 1});
  EXPECT_EQ(meter.result().windows, 0u);
  EXPECT_EQ(meter.result().step_variance, 0.0);
  meter.add_step({&second, 1});
  meter.add_step({&third, 1});
  EXPECT_EQ(meter.result().windows, 1u);
  EXPECT_NEAR(meter.result().step_variance, 2.0, 1e-12);
}

TEST(DriftMeterStep, KeepsPositionsApart) {
  // Each position moves by its own constant, so the variance must be 0. Positions are not averaged.
  DriftMeter meter(2, 4);
  for (int i = 0; i < 4; ++i) meter.add_step(std::vector<float>{3.0f, -3.0f});
  EXPECT_NEAR(meter.result().step_variance, 0.0, 1e-12);
  EXPECT_NEAR(meter.result().step_mean_square, 9.0, 1e-12);
}

TEST(DriftMeterStep, IsNeverNegative) {
  DriftMeter meter(1, 2);
  for (const float delta : {1.0f, -1.0f}) meter.add_step({&delta, 1});
  EXPECT_EQ(meter.result().step_mean_square, 0.0) << "m = 0 and v = 2 give -1 before it is cut off";
}

TEST(DriftMeterStep, APositionThatIsNoNumberSpoilsOneWindowOnly) {
  DriftMeter meter(2, 2);
  for (const float bad : {kNan, 0.0f, 2.0f, 2.0f}) meter.add_step(std::vector<float>{bad, 1.0f});
  EXPECT_EQ(meter.result().windows, 2u);
  EXPECT_NEAR(meter.result().step_mean_square, (1.0 + 4.0 + 1.0) / 3, 1e-12);
}

// Steps are independent with mean u and variance s^2. Both estimates must be unbiased; the square
// of a short window's mean would be s^2/K too large.
TEST(DriftMeterStep, IsUnbiasedForShortWindows) {
  constexpr std::uint32_t kWindow = 4;
  constexpr double kMean = 0.1;
  constexpr double kVariance = 1.0 / 12;  // variance of a uniform number
  constexpr int kWindows = 4000;
  DriftMeter meter(8, kWindow);
  for (std::uint32_t step = 0; step < kWindows * kWindow; ++step) {
    std::vector<float> delta;
    for (std::uint32_t i = 0; i < 8; ++i) {
      delta.push_back(static_cast<float>(kMean + to_unit(keyed_hash(5, step, i, 0, 0)) - 0.5));
    }
    meter.add_step(delta);
  }
  const DriftMeasurement result = meter.result();
  // There are windows x positions independent values. Var v = (mu4 - s^4 (K-3)/(K-1))/K, with the
  // fourth central moment of a uniform number, mu4 = 1/80. Var(m^2 - v/K) is at most Var m^2 +
  // Var(v/K), where m is nearly normal: 4 u^2 s^2/K + 2 s^4/K^2.
  constexpr double kValues = kWindows * 8.0;
  const double variance_of_v = (1.0 / 80 - kVariance * kVariance / 3) / kWindow;
  const double variance_of_u = 4 * kMean * kMean * kVariance / kWindow +
                               2 * kVariance * kVariance / (kWindow * kWindow) +
                               variance_of_v / (kWindow * kWindow);
  const double error_of_u = std::sqrt(variance_of_u / kValues);
  EXPECT_NEAR(result.step_variance, kVariance, 4 * std::sqrt(variance_of_v / kValues)) << "4 sigma";
  EXPECT_NEAR(result.step_mean_square, kMean * kMean, 4 * error_of_u) << "4 sigma";
  EXPECT_GT(kVariance / kWindow, 20 * error_of_u) << "the correction would be missed";
}

TEST(DriftMeterGap, AveragesWhatIsFinite) {
  DriftMeter meter(0, 2);
  EXPECT_EQ(meter.result().gap, 0.0);
  meter.add_gap(2.0);
  meter.add_gap(kNan);
  meter.add_gap(4.0);
  EXPECT_EQ(meter.result().gap, 3.0);
  EXPECT_EQ(meter.result().gaps, 2u);
}

}  // namespace
}  // namespace leeway::estimate
