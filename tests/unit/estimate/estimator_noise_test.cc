// The published table of N*Var for pure noise and its closed forms, all through ScalePlan. Nothing
// here is random.
//
// "Pure noise": contributions that are independent with mean zero and variance 1; the variance of a
// result is then the expected sum of its squared scales.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "estimate/noise.h"
#include "estimate/scale_plan.h"
#include "unit/estimate/arrival_patterns.h"

namespace leeway::estimate {
namespace {

using testing::binomial;
using testing::equal_links;
using testing::first_ranks;
using testing::for_each_arrival;
using testing::for_each_symmetric_arrival;
using testing::Moments;
using testing::Scaled;

struct NoiseRow {
  std::size_t size;
  std::uint32_t arrived;  // out of 10 packets, so that the realised rate is 1-p exactly
  double own_weight, own_over_fair, symmetric, ratio, horvitz_thompson, stratified,
      stratified_fallback, augmented;
};
constexpr NoiseRow kNoiseRows[] = {
    {4, 9, 0.277750, 1.1110, 1.15662, 1.11100, 1.08333, 1.13176, 1.13463, 1.16667},
    {4, 6, 0.406000, 1.6240, 1.94581, 1.62400, 1.50000, 1.63462, 1.78600, 2.00000},
    {8, 9, 0.138889, 1.1111, 1.12945, 1.11111, 1.09722, 1.11610, 1.11610, 1.19444},
    {8, 6, 0.208197, 1.6656, 1.86785, 1.66557, 1.58333, 1.78775, 1.79793, 2.16667},
    {64, 9, 0.017361, 1.1111, 1.11308, 1.11111, 1.10938, 1.11134, 1.11134, 1.21875},
    {64, 6, 0.026042, 1.6667, 1.68470, 1.66667, 1.65625, 1.67429, 1.67429, 2.31250},
};
constexpr double kFiveDecimals = 0.6e-5;

class NoiseTable : public ::testing::TestWithParam<NoiseRow> {
 protected:
  std::size_t size() const { return GetParam().size; }
  double rate() const { return GetParam().arrived / 10.0; }
  ScalePlan plan(Estimator estimator, bool external_control = false) const {
    return ScalePlan({.estimator = estimator,
                      .links = equal_links(size(), 100, 10 * GetParam().arrived),
                      .external_control = external_control});
  }
  // Returns N*Var for pure noise, given that at least `others_min` packets of other ranks arrive.
  double noise(Estimator estimator, std::uint32_t others_min = 0) const {
    Moments noise;
    for_each_arrival(plan(estimator), size(), rate(),
                     [&](const Scaled& scaled, std::uint32_t others, double p) {
                       if (others >= others_min) noise.add(scaled.noise(), p);
                     });
    return static_cast<double>(size()) * noise.mean();
  }
  // Returns N times the variances that a report gives for loss and for the loss-free case, if
  // contributions have mean square 1 and no common gradient.
  double reported(Estimator estimator) const {
    const ScalePlan scaling = plan(estimator);
    WeightMoments mean;
    const auto add = [&](const Scaled& scaled, std::uint32_t, double p) {
      mean.add(scaling.moments(scaled.scales, scaled.block.control), p);
    };
    if (estimator == Estimator::symmetric_ratio) {
      for_each_symmetric_arrival(scaling, size(), rate(), add);
    } else {
      for_each_arrival(scaling, size(), rate(), add);
    }
    // If the gradient is 0, the result's mean square is the expected sum of squared weights.
    const NoiseEstimate noise = estimate_noise({.ranks = static_cast<std::uint32_t>(size()),
                                                .result_mean_square = mean.squares,
                                                .contribution_mean_square = 1.0,
                                                .weights = mean,
                                                .measured_weights = mean,
                                                .shrinks = estimator == Estimator::zero_fill})
                                    .value();
    EXPECT_NEAR(noise.gradient_mean_square, 0.0, 1e-9);
    return 1.0 + static_cast<double>(size()) * noise.loss_variance;
  }
};
void PrintTo(const NoiseRow& row, std::ostream* out) {
  *out << "N" << row.size << "Lose" << 10 - row.arrived << "Of10";
}
INSTANTIATE_TEST_SUITE_P(Methods, NoiseTable, ::testing::ValuesIn(kNoiseRows),
                         ::testing::PrintToStringParamName());

TEST_P(NoiseTable, OwnWeightOfTheRatioRule) {
  Moments own;
  for_each_arrival(
      plan(Estimator::ratio), size(), rate(),
      [&](const Scaled& scaled, std::uint32_t, double p) { own.add(scaled.scales[0], p); });
  EXPECT_NEAR(own.mean(), GetParam().own_weight, 0.6e-6);
  EXPECT_NEAR(own.mean() * static_cast<double>(size()), GetParam().own_over_fair, 0.6e-4);
}

TEST_P(NoiseTable, Ratio) {
  EXPECT_NEAR(noise(Estimator::ratio), GetParam().ratio, kFiveDecimals);
  EXPECT_NEAR(reported(Estimator::ratio), GetParam().ratio, kFiveDecimals);
}

TEST_P(NoiseTable, SymmetricRatioGivenAnyArrival) {
  const ScalePlan symmetric = plan(Estimator::symmetric_ratio);
  Moments noise;
  for_each_symmetric_arrival(symmetric, size(), rate(),
                             [&](const Scaled& scaled, std::uint32_t count, double p) {
                               EXPECT_EQ(scaled.block.untouched, count == 0);
                               if (count > 0) noise.add(scaled.noise(), p);
                             });
  const double n = static_cast<double>(size());
  EXPECT_NEAR(n * noise.mean(), GetParam().symmetric, kFiveDecimals);
  EXPECT_NEAR(noise.mass, 1.0 - std::pow(1.0 - rate(), n), 1e-9) << "the chance of a zero result";
  // In a report an empty block is a result of zero. Its mean square error is 1/N, since the
  // loss-free mean has that variance. The loss-free case adds another 1/N, and N times both is 2.
  EXPECT_NEAR(reported(Estimator::symmetric_ratio),
              GetParam().symmetric * noise.mass + 2.0 * (1.0 - noise.mass), kFiveDecimals);
}

TEST_P(NoiseTable, HorvitzThompson) {
  EXPECT_NEAR(noise(Estimator::horvitz_thompson), GetParam().horvitz_thompson, kFiveDecimals);
  EXPECT_NEAR(reported(Estimator::horvitz_thompson), GetParam().horvitz_thompson, kFiveDecimals);
}

TEST_P(NoiseTable, StratifiedGivenAnyOther) {
  EXPECT_NEAR(noise(Estimator::stratified, 1), GetParam().stratified, kFiveDecimals);
}

TEST_P(NoiseTable, StratifiedWithFallback) {
  EXPECT_NEAR(noise(Estimator::stratified), GetParam().stratified_fallback, kFiveDecimals);
  EXPECT_NEAR(reported(Estimator::stratified), GetParam().stratified_fallback, kFiveDecimals);
}

TEST_P(NoiseTable, AugmentedWithTheOwnersContribution) {
  EXPECT_NEAR(noise(Estimator::augmented), GetParam().augmented, kFiveDecimals);
  EXPECT_NEAR(reported(Estimator::augmented), GetParam().augmented, kFiveDecimals);
}

TEST_P(NoiseTable, ZeroFillIsTheLossFreeMeanOfWhatArrived) {
  const double n = static_cast<double>(size());
  EXPECT_NEAR(noise(Estimator::zero_fill), (1.0 + (n - 1.0) * rate()) / n, kFiveDecimals);
  // zero_fill keeps the share m = (1 + (N-1) q)/N of the mean, so the variance is the expected sum
  // of squared weights less m^2/N.
  const double kept = (1.0 + (n - 1.0) * rate()) / n;
  EXPECT_NEAR(reported(Estimator::zero_fill), 1.0 + kept - kept * kept, kFiveDecimals);
}

TEST_P(NoiseTable, ClosedForms) {
  const double n = static_cast<double>(size());
  const double q = rate();
  const double p = 1.0 - q;
  EXPECT_NEAR(noise(Estimator::ratio), (1.0 - std::pow(p, n)) / q, kFiveDecimals);
  EXPECT_NEAR(noise(Estimator::horvitz_thompson), (1.0 + (n - 1.0) / q) / n, kFiveDecimals);
  EXPECT_NEAR(noise(Estimator::augmented), 1.0 + 2.0 * (n - 1.0) / n * p / q, kFiveDecimals);
}

// Checks which estimators have more variance if all contributions share a mean m.
TEST_P(NoiseTable, ACommonMeanCostsOnlyHorvitzThompsonAndAFixedControl) {
  const double n = static_cast<double>(size());
  const double odds = (1.0 - rate()) / rate();
  constexpr double kMean = 3.0;
  constexpr double kControl = 2.5;
  const std::vector<double> constant(size(), kMean);
  const auto added = [&](Estimator estimator, bool external) {
    Moments result;
    for_each_arrival(plan(estimator, external), size(), rate(),
                     [&](const Scaled& scaled, std::uint32_t, double p) {
                       result.add(scaled.result(constant, kControl), p);
                     });
    EXPECT_NEAR(result.mean(), kMean, 1e-5) << to_string(estimator);
    return n * result.variance();
  };
  EXPECT_NEAR(added(Estimator::horvitz_thompson, false), odds * (n - 1) / n * kMean * kMean, 1e-4);
  EXPECT_NEAR(added(Estimator::augmented, true), odds * (n - 1) / n * std::pow(kMean - kControl, 2),
              1e-4);
  EXPECT_NEAR(added(Estimator::augmented, false), 0.0, 1e-4);
  EXPECT_NEAR(added(Estimator::ratio, false), 0.0, 1e-4);
  EXPECT_NEAR(added(Estimator::stratified, false), 0.0, 1e-4);
}

}  // namespace
}  // namespace leeway::estimate
