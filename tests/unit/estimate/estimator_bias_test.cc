// Tests which estimators are biased and by how much, with published check vectors for unequal links
// and four ranks. All go through ScalePlan and are exact over every pattern of arrivals.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "estimate/scale_plan.h"
#include "unit/estimate/arrival_patterns.h"

namespace leeway::estimate {
namespace {

using testing::binomial;
using testing::equal_links;
using testing::for_each_arrival;
using testing::for_each_pattern;
using testing::Moments;
using testing::Scaled;

// --- Unequal links -------------------------------------------------------------------------------

// Expected scales when rank i's packets arrive with rates[i]. The tallies of the links show exactly
// these rates.
struct ExpectedScales {
  std::vector<double> scales;
  double untouched = 0.0;
};
ExpectedScales expected_scales(Estimator estimator, std::span<const double> rates,
                               double owner_weight = 1.0) {
  std::vector<LinkTally> links;
  for (const double rate : rates) {
    links.push_back({.sent = 100,
                     .arrived = static_cast<std::uint32_t>(std::lround(100 * rate)),
                     .weight = 1.0});
  }
  links[0].weight = owner_weight;
  const ScalePlan plan({.estimator = estimator, .links = links});
  ExpectedScales expected{std::vector<double>(rates.size(), 0.0)};
  for_each_pattern(rates, [&](std::uint64_t mask, double probability) {
    const Scaled scaled(plan, {&mask, 1}, rates.size());
    for (std::size_t i = 0; i < rates.size(); ++i)
      expected.scales[i] += probability * scaled.scales[i];
    if (scaled.block.untouched) expected.untouched += probability;
  });
  return expected;
}

void expect_scales(const std::vector<double>& actual, const std::vector<double>& wanted) {
  ASSERT_EQ(actual.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(actual[i], wanted[i], 0.7e-6) << "rank " << i;
}

TEST(UnequalLinks, RatioTiltsTowardsTheOwnerAndTheGoodLinks) {
  const auto four = expected_scales(Estimator::ratio, std::vector<double>{1, .9, .9, .5});
  expect_scales(four.scales, {0.318750, 0.273750, 0.273750, 0.133750});
  const auto eight =
      expected_scales(Estimator::ratio, std::vector<double>{1, .99, .99, .99, .99, .99, .99, .5});
  expect_scales(eight.scales,
                {0.135190, 0.133628, 0.133628, 0.133628, 0.133628, 0.133628, 0.133628, 0.063040});
}

// The owner has no units of work, so all four contributions that count can be lost.
TEST(UnequalLinks, RatioWhenEveryContributionCanBeLost) {
  auto expected = expected_scales(Estimator::ratio, std::vector<double>{1, .9, .9, .9, .5}, 0.0);
  expected.scales.erase(expected.scales.begin());
  expect_scales(expected.scales, {0.286875, 0.286875, 0.286875, 0.138875});
  EXPECT_NEAR(std::accumulate(expected.scales.begin(), expected.scales.end(), 0.0), 0.9995, 1e-6);
  EXPECT_NEAR(expected.untouched, 0.0005, 1e-9);
}

TEST(UnequalLinks, HorvitzThompsonGivesEveryRankItsFairWeight) {
  const std::vector<double> four = {1, .9, .9, .5};
  expect_scales(expected_scales(Estimator::horvitz_thompson, four).scales, {.25, .25, .25, .25});
  const std::vector<double> eight = {1, .99, .99, .99, .99, .99, .99, .5};
  expect_scales(expected_scales(Estimator::horvitz_thompson, eight).scales,
                std::vector<double>(8, 0.125));
}

TEST(UnequalLinks, AugmentedAroundTheOwnersContributionIsFairToo) {
  expect_scales(expected_scales(Estimator::augmented, std::vector<double>{1, .9, .9, .5}).scales,
                {.25, .25, .25, .25});
}

TEST(UnequalLinks, StratifiedIsFairToTheOwnerOnly) {
  const auto expected = expected_scales(Estimator::stratified, std::vector<double>{1, .9, .9, .5});
  // With probability .1 * .1 * .5 the owner is alone, and stands for all.
  EXPECT_NEAR(expected.scales[0], 0.25 * 0.995 + 0.005, 1e-6);
  EXPECT_LT(expected.scales[3], 0.20);
}

TEST(UnequalLinks, HorvitzThompsonOfWeightedContributionsIsTheMeanPerUnit) {
  const std::vector<double> rates = {1, .9, .8, .5};
  const std::vector<double> weights = {3, 1, 0, 4};
  const std::vector<double> contributions = {6, 5, 0, -8};  // sums over the units of each rank
  std::vector<LinkTally> links;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    links.push_back({.sent = 10,
                     .arrived = static_cast<std::uint32_t>(10 * rates[i] + 0.5),
                     .weight = weights[i]});
  }
  const auto mean_of = [&](Estimator estimator, bool external) {
    const ScalePlan plan({.estimator = estimator, .links = links, .external_control = external});
    Moments result;
    for_each_pattern(rates, [&](std::uint64_t mask, double probability) {
      result.add(Scaled(plan, {&mask, 1}, 4).result(contributions, 0.7), probability);
    });
    return result.mean();
  };
  EXPECT_NEAR(mean_of(Estimator::horvitz_thompson, false), 3.0 / 8, 1e-6);
  EXPECT_NEAR(mean_of(Estimator::augmented, false), 3.0 / 8, 1e-6);
  EXPECT_NEAR(mean_of(Estimator::augmented, true), 3.0 / 8, 1e-6)
      << "any control that is independent of the loss";
  EXPECT_GT(std::abs(mean_of(Estimator::ratio, false) - 3.0 / 8), 0.1)
      << "the ratio rule is tilted here";
}

// --- Four ranks: gradients 1, 2, 3, 4; the owner has 1; arrival rate q = 0.8; target 2.5 ---

constexpr double kTarget = 2.5;
const std::vector<double> kGradients = {1, 2, 3, 4};

Moments four_ranks(Estimator estimator, bool external = false, double control = 0.0) {
  const ScalePlan plan(
      {.estimator = estimator, .links = equal_links(4, 5, 4), .external_control = external});
  Moments result;
  for_each_arrival(plan, 4, 0.8, [&](const Scaled& scaled, std::uint32_t, double probability) {
    result.add(scaled.result(kGradients, control), probability);
  });
  return result;
}

void expect_moments(const Moments& actual, double mean, double variance) {
  EXPECT_NEAR(actual.mean(), mean, 1e-6);
  EXPECT_NEAR(actual.variance(), variance, 1.5e-6);
}

TEST(FourRanks, ZeroFill) {
  expect_moments(four_ranks(Estimator::zero_fill), 2.05, 0.29);
}

TEST(FourRanks, Ratio) {
  const Moments result = four_ranks(Estimator::ratio);
  expect_moments(result, 2.376, 0.081735);
  EXPECT_NEAR(result.mean_square_error(kTarget), 0.097111, 1.5e-6);
  // The bias is (own weight - 1/N) times (own gradient - mean of the other gradients).
  const double own_weight = (1.0 - std::pow(0.2, 4)) / (4 * 0.8);
  EXPECT_NEAR(result.mean() - kTarget, (own_weight - 0.25) * (1.0 - 3.0), 1e-6);
}

TEST(FourRanks, HorvitzThompson) {
  expect_moments(four_ranks(Estimator::horvitz_thompson), kTarget, 0.453125);
}

TEST(FourRanks, StratifiedWithFallback) {
  const Moments result = four_ranks(Estimator::stratified);
  expect_moments(result, 2.488, 0.089856);
  EXPECT_NEAR(result.mean_square_error(kTarget), 0.09, 1.5e-6);
}

TEST(FourRanks, SymmetricRatioGivenAnyArrival) {
  // Visits every pattern because the gradients differ. The owner's contribution is kept with
  // probability q like all others.
  const ScalePlan plan({.estimator = Estimator::symmetric_ratio, .links = equal_links(4, 10, 8)});
  const auto blocks = testing::virtual_loss_blocks(plan, 4, 0);  // owner kept, owner lost
  Moments result;
  Moments with_empty;
  for_each_pattern(std::vector<double>(4, 0.8), [&](std::uint64_t pattern, double probability) {
    const std::uint64_t mask = pattern | 1;
    const Scaled scaled(plan, {&mask, 1}, 4, (pattern & 1) != 0 ? blocks.first : blocks.second);
    if (pattern != 0) result.add(scaled.result(kGradients), probability);
    with_empty.add(scaled.result(kGradients), probability);
  });
  expect_moments(result, kTarget, 0.153134);
  EXPECT_NEAR(with_empty.mean(), kTarget * (1.0 - std::pow(0.2, 4)), 1e-6)
      << "an empty block gives 0";
  // If K contributions are kept, the variance is S2 (E[1/K given K >= 1] - 1/N). S2 = 5/3 is the
  // sample variance of the gradients.
  Moments inverse;
  for (std::uint32_t k = 1; k <= 4; ++k) inverse.add(1.0 / k, binomial(4, k, 0.8));
  EXPECT_NEAR(result.variance(), 5.0 / 3 * (inverse.mean() - 0.25), 1e-6);
}

TEST(FourRanks, AugmentedWithTheOwnersContribution) {
  expect_moments(four_ranks(Estimator::augmented), kTarget, 0.21875);
  expect_moments(four_ranks(Estimator::augmented, true, 1.0), kTarget, 0.21875);
}

TEST(FourRanks, AugmentedWithFixedControls) {
  expect_moments(four_ranks(Estimator::augmented, true, 2.0), kTarget, 0.078125);
  expect_moments(four_ranks(Estimator::augmented, true, 2.5), kTarget, 0.04296875);
  expect_moments(four_ranks(Estimator::augmented, true, 3.0), kTarget, 0.03125);
}

TEST(FourRanks, MomentsOfTheWeightsGiveTheVariance) {
  // The moments assume equal squares, so they get the mean of links 2, 3 and 4, whose squares are
  // 4, 9 and 16.
  const double mean_square = (4.0 + 9.0 + 16.0) / 3;
  const ScalePlan plan({.estimator = Estimator::horvitz_thompson, .links = equal_links(4, 5, 4)});
  const double rates[] = {1.0, 0.8, 0.8, 0.8};
  WeightMoments mean;
  for_each_pattern(rates, [&](std::uint64_t mask, double probability) {
    const Scaled scaled(plan, {&mask, 1}, 4);
    mean.add(plan.moments(scaled.scales, 0.0f), probability);
  });
  EXPECT_NEAR((mean.squares - 2.0 * mean.fair_products + mean.fair_squares) * mean_square, 0.453125,
              1e-6);
}

}  // namespace
}  // namespace leeway::estimate
