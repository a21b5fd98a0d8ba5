// Compares the estimate with simulated operations whose gradient, dispersion and noise are known.
// ScalePlan scales what the simulated loss leaves.
#include "estimate/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <ostream>
#include <random>
#include <vector>

#include "estimate/scale_plan.h"
#include "unit/estimate/arrival_patterns.h"

namespace leeway::estimate {
namespace {

using testing::equal_links;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The mean over trials and its standard error.
class Sample {
 public:
  void add(double value) {
    ++count_;
    const double delta = value - mean_;
    mean_ += delta / count_;
    squares_ += delta * (value - mean_);
  }
  double mean() const { return mean_; }
  double error() const { return std::sqrt(squares_ / (count_ * (count_ - 1.0))); }

 private:
  double count_ = 0.0;
  double mean_ = 0.0;
  double squares_ = 0.0;
};
constexpr double kSigmas = 4.0;

// Moments of the weights of equal ranks without loss.
WeightMoments lossless(std::uint32_t ranks) {
  const double fair = 1.0 / ranks;
  return {.sum = 1.0,
          .sum_squared = 1.0,
          .squares = fair,
          .encoded_squares = fair * (1.0 - fair),
          .fair_products = fair,
          .fair_squares = fair};
}

struct Setting {
  Estimator estimator;
  std::uint32_t ranks;
  double loss;
  // If true, the caller gives a control variate.
  bool external_control = false;
  // If true, ranks have the weights in kWeights, else 1.
  bool weighted = false;
  // If true, the link from rank i loses 2 i / N times `loss`, else `loss`. The mean over links is
  // `loss` in both cases, since rank 0 is the owner and needs no link.
  bool unequal = false;
  std::uint32_t packets = 256;
  std::uint32_t burst = 1;  // packets lost in a row
};
void PrintTo(const Setting& setting, std::ostream* out) {
  *out << to_string(setting.estimator) << setting.ranks << "Lose" << std::lround(100 * setting.loss)
       << (setting.external_control ? "External" : "") << (setting.weighted ? "Weighted" : "")
       << (setting.unequal ? "Unequal" : "");
  if (setting.burst > 1) *out << "Bursts" << setting.burst;
  if (setting.packets != 256) *out << "Packets" << setting.packets;
}

// Weights of four ranks. The square of the owner's weight, 25, is the mean of all squares; the
// formulas are exact only then.
constexpr double kWeights[] = {5, 7, 1, 5};
double weight_of(const Setting& setting, std::uint32_t rank) {
  return setting.weighted ? kWeights[rank] : 1.0;
}
double loss_of(const Setting& setting, std::uint32_t rank) {
  return setting.unequal ? setting.loss * 2.0 * rank / setting.ranks : setting.loss;
}
// Returns the rank's share in the loss-free average.
double share_of(const Setting& setting, std::uint32_t rank) {
  return setting.weighted ? kWeights[rank] / 18 : 1.0 / setting.ranks;
}

std::vector<LinkTally> links_of(const Setting& setting, std::uint32_t sent, std::uint32_t arrived) {
  std::vector<LinkTally> links = equal_links(setting.ranks, sent, arrived);
  for (std::uint32_t rank = 0; rank < setting.ranks; ++rank)
    links[rank].weight = weight_of(setting, rank);
  return links;
}

constexpr double kGradient = 0.7;    // every element's true gradient is + or - this
constexpr double kDispersion = 1.3;  // standard deviation of a contribution around it
constexpr double kGuessError = 0.8;  // standard deviation of a control variate around it
constexpr double kQuantum = 0.9;     // quantisation adds a uniform number from +-kQuantum/2
constexpr double kQuantisationVariance = kQuantum * kQuantum / 12.0;
constexpr double kSpreadVariance = 0.02;
constexpr std::uint32_t kPacketElements = 4;

// Values measured in one operation.
struct Outcome {
  // Mean squares over all elements:
  double result = 0.0;          // of the result
  double contribution = 0.0;    // of one contribution
  double control = 0.0;         // of contribution - control variate
  double loss_error = 0.0;      // of result without quantisation - gain * mean contribution
  double encoding_error = 0.0;  // of the change by quantisation
  double gain = 1.0;
  WeightMoments weights;
};

// One lossy average of packets whose contributions arrive independently.
class Operation {
 public:
  Operation(const Setting& setting, std::uint32_t seed) : setting_(setting), random_(seed) {}

  Outcome run() {
    std::vector<LinkTally> links = links_of(setting_, setting_.packets, 0);
    std::vector<std::uint64_t> masks(setting_.packets, 1);  // owner: rank 0
    for (std::uint32_t rank = 1; rank < setting_.ranks; ++rank) {
      // If nothing of a flow arrives, the owner asks for the flow until something does.
      while (links[rank].arrived == 0) links[rank].arrived = lose(rank, masks);
    }
    const ScalePlan plan({.estimator = setting_.estimator,
                          .links = links,
                          .external_control = setting_.external_control,
                          .seed = random_()});
    std::vector<std::vector<float>> scales(setting_.packets);
    std::vector<BlockScales> blocks(setting_.packets);
    for (std::uint32_t packet = 0; packet < setting_.packets; ++packet) {
      scales[packet].resize(setting_.ranks);
      blocks[packet] = plan.scales({&masks[packet], 1}, packet, scales[packet]);
      outcome_.weights.add(plan.moments(scales[packet], blocks[packet].control), 1.0);
    }
    outcome_.weights = outcome_.weights.over(setting_.packets);
    if (setting_.estimator == Estimator::zero_fill) outcome_.gain = outcome_.weights.sum;
    for (std::uint32_t packet = 0; packet < setting_.packets; ++packet) {
      for (std::uint32_t i = 0; i < kPacketElements; ++i)
        add_element(blocks[packet], scales[packet]);
    }
    return outcome_;
  }

 private:
  // Loses packets of the link in a random order, so that bursts hit any of them. Returns how many
  // arrive.
  std::uint32_t lose(std::uint32_t rank, std::vector<std::uint64_t>& masks) {
    std::vector<std::uint32_t> order(setting_.packets);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random_);
    const double loss = loss_of(setting_, rank);
    // A link is lossy for the share `loss` of its time, in bursts of this mean length.
    std::bernoulli_distribution starts(loss), ends(1.0 / setting_.burst);
    std::bernoulli_distribution begins(loss / (1.0 - loss) / setting_.burst);
    bool lossy = starts(random_);
    std::uint32_t arrived = 0;
    for (const std::uint32_t packet : order) {
      if (!lossy) {
        masks[packet] |= std::uint64_t{1} << rank;
        ++arrived;
      }
      lossy = lossy ? !ends(random_) : begins(random_);
    }
    return arrived;
  }

  void add_element(const BlockScales& block, const std::vector<float>& scales) {
    const double kPart = 1.0 / (setting_.packets * kPacketElements);
    const double gradient = random_() % 2 == 0 ? kGradient : -kGradient;
    const double control = gradient + kGuessError * normal_(random_);
    double exact = block.control * control;
    double error = 0.0;
    double mean = 0.0;
    for (std::uint32_t rank = 0; rank < setting_.ranks; ++rank) {
      const double contribution =
          // Draws a contribution per unit of work.
          gradient + kDispersion * normal_(random_);
      const double share = scales[rank] * weight_of(setting_, rank);
      exact += share * contribution;
      if (rank != 0) error += share * kQuantum * uniform_(random_);
      mean += contribution * share_of(setting_, rank);
      outcome_.contribution += kPart * contribution * contribution / setting_.ranks;
      outcome_.control +=
          kPart * (contribution - control) * (contribution - control) / setting_.ranks;
    }
    outcome_.result += kPart * (exact + error) * (exact + error);
    outcome_.loss_error += kPart * (exact - outcome_.gain * mean) * (exact - outcome_.gain * mean);
    outcome_.encoding_error += kPart * error * error;
  }

  Setting setting_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{-0.5, 0.5};
  Outcome outcome_;
};

NoiseStatistics statistics_of(const Setting& setting, const Outcome& outcome) {
  return {.ranks = setting.ranks,
          .result_mean_square = outcome.result,
          .contribution_mean_square = outcome.contribution,
          .control_mean_square = outcome.control,
          .quantisation_variance = kQuantisationVariance,
          .spread_variance = kSpreadVariance,
          .weights = outcome.weights,
          .measured_weights = outcome.weights,
          .shrinks = setting.estimator == Estimator::zero_fill};
}

class EstimateNoise : public ::testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(
    Estimators, EstimateNoise,
    ::testing::Values(
        Setting{Estimator::zero_fill, 8, 0.2}, Setting{Estimator::ratio, 4, 0.0},
        Setting{Estimator::ratio, 8, 0.2}, Setting{Estimator::ratio, 2, 0.4},
        Setting{Estimator::symmetric_ratio, 3, 0.4}, Setting{Estimator::stratified, 3, 0.4},
        Setting{Estimator::stratified, 8, 0.1}, Setting{Estimator::horvitz_thompson, 4, 0.3},
        Setting{Estimator::augmented, 8, 0.2}, Setting{Estimator::augmented, 4, 0.3, true},
        Setting{Estimator::ratio, 4, 0.0, false, true},
        Setting{Estimator::zero_fill, 4, 0.2, false, true},
        Setting{Estimator::horvitz_thompson, 4, 0.3, false, true},
        Setting{Estimator::augmented, 4, 0.3, false, true},
        Setting{Estimator::augmented, 4, 0.3, true, true},
        Setting{Estimator::horvitz_thompson, 4, 0.1, false, false, false, 256, 8},
        Setting{Estimator::augmented, 4, 0.1, false, false, false, 64, 8},
        Setting{Estimator::ratio, 4, 0.2, false, false, false, 64, 8},
        Setting{Estimator::zero_fill, 4, 0.2, false, false, false, 64, 8},
        Setting{Estimator::horvitz_thompson, 4, 0.2, false, false, false, 4},
        Setting{Estimator::augmented, 4, 0.2, false, false, false, 4},
        Setting{Estimator::horvitz_thompson, 4, 0.2, false, false, true},
        Setting{Estimator::augmented, 4, 0.2, false, false, true},
        Setting{Estimator::stratified, 4, 0.2, false, false, true},
        Setting{Estimator::ratio, 4, 0.2, false, true, true, 4},
        Setting{Estimator::zero_fill, 4, 0.2, false, false, true, 1}),
    ::testing::PrintToStringParamName());

TEST_P(EstimateNoise, FindsEveryPartOfASimulatedOperation) {
  const Setting setting = GetParam();
  const std::uint32_t kTrials = 60 * 256 / setting.packets;
  Sample gradient, dispersion, loss, encoding;
  for (std::uint32_t trial = 0; trial < kTrials; ++trial) {
    const Outcome outcome = Operation(setting, 1000 + trial).run();
    const auto measured = estimate_noise(statistics_of(setting, outcome));
    if (!measured) continue;
    const NoiseEstimate& estimate = *measured;
    gradient.add(estimate.gradient_mean_square);
    dispersion.add(estimate.dispersion);
    loss.add(estimate.loss_variance - outcome.loss_error);
    EXPECT_EQ(estimate.gain, outcome.gain);
    encoding.add(estimate.quantisation_variance - kSpreadVariance - outcome.encoding_error);
  }
  EXPECT_NEAR(gradient.mean(), kGradient * kGradient, kSigmas * gradient.error());
  EXPECT_NEAR(dispersion.mean(), kDispersion * kDispersion, kSigmas * dispersion.error());
  EXPECT_NEAR(loss.mean(), 0.0, kSigmas * loss.error() + 1e-12);
  EXPECT_NEAR(encoding.mean(), 0.0, kSigmas * encoding.error() + 1e-12);
  // The errors must be small enough to detect a wrong formula.
  EXPECT_LT(gradient.error(), 0.1 * kGradient * kGradient);
  EXPECT_LT(encoding.error(), 0.01 * kQuantisationVariance);
}

TEST(EstimateNoiseOfOneRank, IsTheQuantisationAlone) {
  const WeightMoments kAlone = lossless(1);
  const NoiseEstimate estimate = estimate_noise({.ranks = 1,
                                                 .result_mean_square = 4.0,
                                                 .contribution_mean_square = 4.0,
                                                 .quantisation_variance = 7.0,
                                                 .spread_variance = 0.25,
                                                 .weights = kAlone,
                                                 .measured_weights = kAlone})
                                     .value();
  EXPECT_EQ(estimate.gradient_mean_square, 4.0);
  EXPECT_EQ(estimate.dispersion, 0.0);
  EXPECT_EQ(estimate.loss_variance, 0.0);
  EXPECT_EQ(estimate.quantisation_variance, 0.25);
  EXPECT_EQ(estimate.ratio(), 4.0);
}

TEST(EstimateNoiseByHand, FourRanksWithoutLoss) {
  // With a squared gradient of 1 and a dispersion of 2, the mean square of contributions is 1 + 2 =
  // 3, and that of the mean of four is 1 + 2/4 = 1.5. Quantisation adds 16 * 3/16, which makes 4.5.
  const NoiseEstimate estimate = estimate_noise({.ranks = 4,
                                                 .result_mean_square = 4.5,
                                                 .contribution_mean_square = 3.0,
                                                 .quantisation_variance = 16.0,
                                                 .weights = lossless(4),
                                                 .measured_weights = lossless(4)})
                                     .value();
  EXPECT_DOUBLE_EQ(estimate.gradient_mean_square, 1.0);
  EXPECT_DOUBLE_EQ(estimate.dispersion, 2.0);
  EXPECT_DOUBLE_EQ(estimate.quantisation_variance, 3.0);
  EXPECT_EQ(estimate.loss_variance, 0.0);
  EXPECT_DOUBLE_EQ(estimate.ratio(), 1.0 / std::sqrt(3.0));
}

// There is no estimate if the result has only the owner's contribution, whatever its weight is.
TEST(EstimateNoiseExtremes, OfOneContributionThereIsNone) {
  for (const double weight : {0.0, 0.5, 1.0}) {
    const WeightMoments alone{.sum = weight,
                              .sum_squared = weight * weight,
                              .squares = weight * weight,
                              .fair_products = weight / 2,
                              .fair_squares = 0.5};
    EXPECT_FALSE(estimate_noise({.ranks = 2,
                                 .result_mean_square = weight * weight,
                                 .contribution_mean_square = 1.0,
                                 .quantisation_variance = 0.1,
                                 .weights = alone,
                                 .measured_weights = alone}));
  }
}

TEST(NoiseEstimateRatio, IsInfiniteWithoutNoise) {
  EXPECT_EQ((NoiseEstimate{.gradient_mean_square = 1.0}.ratio()), kInfinity);
  EXPECT_EQ(NoiseEstimate{}.ratio(), kInfinity);
}

TEST(NoiseEstimateRatio, IsZeroWhenNoiseDominates) {
  EXPECT_EQ((NoiseEstimate{.gradient_mean_square = -1.0, .loss_variance = 1.0}.ratio()), 0.0);
}

TEST(NoiseEstimateRatio, IsZeroForValuesThatAreNoNumbers) {
  EXPECT_EQ((NoiseEstimate{.gradient_mean_square = kNaN, .loss_variance = 1.0}.ratio()), 0.0);
  EXPECT_EQ((NoiseEstimate{.gradient_mean_square = 1.0, .loss_variance = kNaN}.ratio()), 0.0);
  EXPECT_EQ((NoiseEstimate{.gradient_mean_square = kInfinity, .loss_variance = 1.0}.ratio()), 0.0);
}

TEST(NoiseEstimateRatio, CountsOnlyTheGradientThatComesThrough) {
  const NoiseEstimate whole{.gradient_mean_square = 4.0, .loss_variance = 1.0};
  NoiseEstimate half = whole;
  half.gain = 0.5;
  EXPECT_EQ(half.ratio(), 0.5 * whole.ratio());
}

TEST(StepProgress, HasThePublishedValues) {
  // With x = noise over gradient, f(1/4) = 0.9412, f(1/2) = 0.8, f(1) = 1/2, f(2) = 0.2.
  EXPECT_NEAR(step_progress(1.0 / 0.25), 0.9412, 0.5e-4);
  EXPECT_DOUBLE_EQ(step_progress(1.0 / 0.5), 0.8);
  EXPECT_DOUBLE_EQ(step_progress(kCriticalRatio), 0.75);
  EXPECT_DOUBLE_EQ(step_progress(1.0), 0.5);
  EXPECT_DOUBLE_EQ(step_progress(0.5), 0.2);
  EXPECT_EQ(step_progress(0.0), 0.0);
  EXPECT_EQ(step_progress(kInfinity), 1.0);
}

NoiseStatistics step_with_gradient(double gradient) {
  return {.ranks = 4,
          .result_mean_square = gradient + 0.25,
          .contribution_mean_square = gradient + 1.0,
          .spread_variance = 1.0,
          .weights = lossless(4),
          .measured_weights = lossless(4)};
}

TEST(NoiseAverageEstimate, OfNothingIsNoNoise) {
  const NoiseAverage average;
  EXPECT_TRUE(average.empty());
  EXPECT_EQ(average.estimate().ratio(), kInfinity);
}

TEST(NoiseAverageEstimate, OfEqualStepsIsOneStep) {
  NoiseAverage average(5.0);
  for (int i = 0; i < 3; ++i) average.add(step_with_gradient(9.0));
  EXPECT_NEAR(average.estimate().gradient_mean_square, 9.0, 1e-12);
  EXPECT_NEAR(average.estimate().ratio(), 3.0, 1e-12);
  EXPECT_NEAR(average.estimate().gain, 1.0, 1e-15);
}

TEST(NoiseAverageEstimate, IsTheRatioOfAverages) {
  NoiseAverage average(1e6);
  average.add(step_with_gradient(9.0));
  average.add(step_with_gradient(-1.0));               // a step's estimate may be negative
  EXPECT_NEAR(average.estimate().ratio(), 2.0, 1e-5);  // sqrt(4), not (3 + 0)/2
}

TEST(NoiseAverageEstimate, ForgetsByItsMemory) {
  constexpr double kMemory = 8.0;
  NoiseAverage average(kMemory);
  for (int i = 0; i < 400; ++i) average.add(step_with_gradient(1.0));
  for (int i = 0; i < 8; ++i) average.add(step_with_gradient(0.0));
  EXPECT_NEAR(average.estimate().gradient_mean_square, std::exp(-1.0), 1e-9);
}

TEST(NoiseAverageEstimate, OfOneStepKnowsNoError) {
  NoiseAverage average;
  EXPECT_EQ(average.estimate().gradient_error, 0.0);
  average.add(step_with_gradient(9.0));
  EXPECT_EQ(average.estimate().gradient_error, 0.0);
}

// The mean of two values at distance a has the standard error a/2: their deviation a/sqrt(2), over
// sqrt(2).
TEST(NoiseAverageEstimate, ErrorOfEquallyWeightedStepsIsTheTextbooks) {
  NoiseAverage average(1e6);
  average.add(step_with_gradient(9.0));
  average.add(step_with_gradient(-1.0));
  EXPECT_NEAR(average.estimate().gradient_error, 5.0, 1e-4);
}

// A long average has the error of as many independent steps as twice its memory.
TEST(NoiseAverageEstimate, ErrorCoversTheTruthAsOftenAsItSays) {
  constexpr int kTrials = 2000;
  std::mt19937 generator(1);
  std::normal_distribution<double> gradient(0.0, 1.0);
  int within_two = 0;
  double squared_errors = 0.0;
  for (int trial = 0; trial < kTrials; ++trial) {
    NoiseAverage average(20.0);
    for (int i = 0; i < 150; ++i) average.add(step_with_gradient(gradient(generator)));
    const NoiseEstimate estimate = average.estimate();
    within_two += std::abs(estimate.gradient_mean_square) < 2.0 * estimate.gradient_error ? 1 : 0;
    squared_errors += estimate.gradient_error * estimate.gradient_error;
  }
  EXPECT_NEAR(squared_errors / kTrials, 1.0 / 40.0, 0.001);
  EXPECT_NEAR(within_two, 0.94 * kTrials, 0.02 * kTrials);
}

TEST(NoiseEstimateRatioAtMost, AddsTwoErrorsToTheGradient) {
  const NoiseEstimate lost{
      .gradient_mean_square = -1.0, .loss_variance = 0.25, .gradient_error = 1.0};
  EXPECT_EQ(lost.ratio(), 0.0);
  EXPECT_DOUBLE_EQ(lost.ratio_at_most(), 2.0);
}

TEST(NoiseEstimateProgressLost, IsAQuarterAtTheCriticalRatioOfAnExactBatch) {
  const NoiseEstimate exact_batch{.gradient_mean_square = 3.0, .loss_variance = 1.0};
  EXPECT_DOUBLE_EQ(exact_batch.progress_lost(4), 0.25);
  const NoiseEstimate batch{.gradient_mean_square = 3.0, .dispersion = 24.0, .loss_variance = 1.0};
  EXPECT_DOUBLE_EQ(batch.progress_lost(4), 0.1);
  EXPECT_EQ(NoiseEstimate{}.progress_lost(1), 0.0);
}

TEST(IsCostly, NeedsAWellMeasuredGradientAndNoiseThatMatters) {
  const NoiseEstimate weak{.gradient_mean_square = 1.0, .loss_variance = 1.0};
  EXPECT_TRUE(is_costly(weak, 4));
  NoiseEstimate unclear = weak;
  unclear.gradient_error = 1.5;
  EXPECT_FALSE(is_costly(unclear, 4));
  NoiseEstimate hidden = weak;
  hidden.dispersion = 40.0;
  EXPECT_FALSE(is_costly(hidden, 4));
}

TEST(NoiseAverageAdd, LeavesOutStepsThatAreNotFinite) {
  NoiseAverage average;
  average.add(step_with_gradient(4.0));
  average.add(step_with_gradient(kNaN));
  average.add(step_with_gradient(kInfinity));
  EXPECT_DOUBLE_EQ(average.estimate().gradient_mean_square, 4.0);
}

}  // namespace
}  // namespace leeway::estimate
