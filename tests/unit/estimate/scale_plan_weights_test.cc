// Effects of weights on the scales of one packet, and the edges: one rank, many, no packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "estimate/scale_plan.h"
#include "unit/estimate/weighted_links.h"

namespace leeway::estimate {
namespace {

using testing::equal_links;
using testing::first_ranks;
using testing::kAllEstimators;
using testing::kUnknown;
using testing::mask_of;
using testing::ranks;
using testing::Scaled;
using testing::sum_of;
using testing::weighted_links;

// --- weights -------------------------------------------------------------------------------------

TEST(ScalePlanWeights, UnknownOnesCountAsTheMeanOfTheKnown) {
  const auto links = weighted_links({1, 3, kUnknown, kUnknown});
  std::vector<LinkTally> assumed = weighted_links({1, 3, 2, 2});
  for (const Estimator estimator : kAllEstimators) {
    const Scaled unknown(ScalePlan({.estimator = estimator, .links = links}), ranks(4, {0, 1}), 4);
    const Scaled known(ScalePlan({.estimator = estimator, .links = assumed}), ranks(4, {0, 1}), 4);
    EXPECT_EQ(unknown.scales, known.scales) << to_string(estimator);
  }
}

TEST(ScalePlanWeights, NonsenseCountsAsUnknown) {
  for (const double nonsense : {-1.0, std::numeric_limits<double>::infinity()}) {
    const Scaled packet(
        ScalePlan({.estimator = Estimator::zero_fill, .links = weighted_links({1, 3, nonsense})}),
        ranks(3, {0, 1}), 3);
    EXPECT_FLOAT_EQ(packet.scales[0], 1.0f / 6);
  }
}

TEST(ScalePlanWeights, AllUnknownIsTheSameAsAllEqual) {
  const auto links = weighted_links({kUnknown, kUnknown});
  const Scaled packet(ScalePlan({.estimator = Estimator::ratio, .links = links}), first_ranks(2, 2),
                      2);
  EXPECT_EQ(packet.scales, (std::vector<float>{0.5f, 0.5f}));
}

TEST(ScalePlanWeights, ASumHasNone) {
  const auto links = weighted_links({1, 4, kUnknown});
  const Scaled packet(
      ScalePlan({.estimator = Estimator::ratio, .op = ReduceOp::sum, .links = links}),
      ranks(3, {0, 1}), 3);
  EXPECT_EQ(packet.scales, (std::vector<float>{1.5f, 1.5f, 0.0f}));
}

TEST(ScalePlanWeights, ScalesFollowTheirUnit) {
  // Doubling all weights and contributions must not change the mean per unit.
  for (const Estimator estimator : kAllEstimators) {
    const auto mask = ranks(3, {0, 2});
    const Scaled one(ScalePlan({.estimator = estimator, .links = weighted_links({1, 2, 3})}), mask,
                     3);
    const Scaled two(ScalePlan({.estimator = estimator, .links = weighted_links({2, 4, 6})}), mask,
                     3);
    for (std::size_t rank = 0; rank < 3; ++rank)
      EXPECT_FLOAT_EQ(one.scales[rank], 2 * two.scales[rank]);
  }
}

TEST(ScalePlanWeights, ARankWithoutUnitsMovesNothing) {
  // Rank 2 contributes zeros with weight 0, so the result must be that of the other ranks. All
  // packets arrive, because zero_fill and the Horvitz-Thompson forms depend on every arrival.
  for (const Estimator estimator : kAllEstimators) {
    const Scaled packet(
        ScalePlan({.estimator = estimator, .links = weighted_links({1, 3, 0}, 4, 4)}),
        first_ranks(3, 3), 3);
    EXPECT_NEAR(packet.result(std::vector<double>{2.0, 6.0, 0.0}), 2.0, 1e-6)
        << to_string(estimator);
    EXPECT_EQ(packet.scales[2], 0.0f) << "what its buffer holds is not read";
    EXPECT_FALSE(packet.block.untouched);
  }
}

TEST(ScalePlanWeights, OnlyRanksWithoutUnitsLeaveTheBlockUntouched) {
  for (const Estimator estimator : kAllEstimators) {
    const ScalePlan plan({.estimator = estimator, .links = weighted_links({0, 0, 5}, 10, 10)});
    const Scaled packet(plan, ranks(3, {0, 1}), 3);
    EXPECT_EQ(packet.scales, std::vector<float>(3, 0.0f)) << to_string(estimator);
    EXPECT_TRUE(packet.block.untouched);
    EXPECT_EQ(packet.block.contributors, 2u) << "they did contribute: nothing";
  }
}

TEST(ScalePlanWeights, NoUnitsAnywhereLeaveTheBlockUntouched) {
  for (const Estimator estimator : kAllEstimators) {
    const ScalePlan plan(
        {.estimator = estimator, .links = weighted_links({0, 0}, 10, 9), .external_control = true});
    const Scaled packet(plan, first_ranks(2, 2), 2);
    EXPECT_EQ(packet.scales, std::vector<float>(2, 0.0f));
    EXPECT_TRUE(packet.block.untouched);
    EXPECT_EQ(packet.block.control, 0.0f) << "there is no mean to guess";
    EXPECT_EQ(plan.moments(packet.scales, 0.0f).sum_squared, 0.0);
  }
}

TEST(ScalePlanWeights, AnExternalControlStandsInForContributionsThatAreAllLost) {
  const ScalePlan plan({.estimator = Estimator::augmented,
                        .links = weighted_links({0, 1, 1}, 10, 9),
                        .external_control = true});
  const Scaled packet(plan, ranks(3, {0}), 3);
  EXPECT_TRUE(packet.block.untouched);
  EXPECT_EQ(packet.block.control, 1.0f);
}

TEST(ScalePlanWeights, ExtremeOnesGiveFiniteScales) {
  for (const double weight : {1e-42, 3e38}) {
    for (const Estimator estimator : kAllEstimators) {
      const Scaled packet(
          ScalePlan({.estimator = estimator, .links = weighted_links({weight, weight})}),
          ranks(2, {0}), 2);
      for (const float scale : packet.scales)
        EXPECT_TRUE(std::isfinite(scale)) << to_string(estimator) << weight;
    }
  }
}

// --- rank counts ---------------------------------------------------------------------------------

TEST(ScalePlanSize, OneRankIsItsOwnResult) {
  for (const Estimator estimator : kAllEstimators) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
      const ScalePlan plan({.estimator = estimator, .op = op, .links = equal_links(1, 3, 3)});
      const Scaled packet(plan, first_ranks(1, 1), 1);
      EXPECT_EQ(packet.scales[0], 1.0f) << to_string(estimator);
      EXPECT_EQ(packet.block.contributors, 1u);
      EXPECT_EQ(plan.moments(packet.scales, 0.0f).squares, 1.0);
    }
  }
}

class ScalePlanWords : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(RankCounts, ScalePlanWords, ::testing::Values(2, 63, 64, 65, 257, 1024));

// The owner is the last rank and the lost one is in the middle, so bits on both sides of every word
// boundary matter.
TEST_P(ScalePlanWords, AConstantIsReproducedWithOneRankLost) {
  const std::size_t size = GetParam();
  const auto owner = static_cast<Rank>(size - 1);
  auto mask = first_ranks(size, size);
  const std::size_t lost = size / 2 == owner ? 0 : size / 2;
  mask[lost / 64] &= ~(std::uint64_t{1} << lost % 64);
  std::vector<LinkTally> links(size, {.sent = 8, .arrived = 8, .weight = 1.0});
  links[lost].arrived = 7;
  for (const Estimator estimator :
       {Estimator::ratio, Estimator::stratified, Estimator::augmented}) {
    const Scaled packet(ScalePlan({.estimator = estimator, .links = links, .owner = owner}), mask,
                        size);
    EXPECT_EQ(packet.block.contributors, size - 1);
    EXPECT_EQ(packet.scales[lost], 0.0f);
    EXPECT_NEAR(sum_of(packet.scales), 1.0, 1e-5) << to_string(estimator);
  }
  const ScalePlan zero_fill({.estimator = Estimator::zero_fill, .links = links, .owner = owner});
  EXPECT_NEAR(sum_of(Scaled(zero_fill, mask, size).scales), 1.0 - 1.0 / size, 1e-5);
}

TEST_P(ScalePlanWords, TheOwnerAloneIsTheFallbackOfEveryPooledEstimator) {
  const std::size_t size = GetParam();
  const auto owner = static_cast<Rank>(size - 1);
  const auto mask = mask_of(size, std::vector<std::size_t>{owner});
  std::vector<LinkTally> links(size, {.sent = 8, .arrived = 4, .weight = 1.0});
  links[owner].arrived = 8;
  for (const Estimator estimator :
       {Estimator::ratio, Estimator::stratified, Estimator::augmented}) {
    const Scaled packet(ScalePlan({.estimator = estimator, .links = links, .owner = owner}), mask,
                        size);
    EXPECT_FLOAT_EQ(packet.scales[owner], 1.0f) << to_string(estimator);
    EXPECT_FLOAT_EQ(sum_of(packet.scales), 1.0f);
  }
}

// --- moments ---------------------------------------------------------------------------------

TEST(ScalePlanMoments, OfASumAreThoseOfItsAverage) {
  const auto links = equal_links(4, 10, 8);
  for (const Estimator estimator : kAllEstimators) {
    const auto moments = [&](ReduceOp op) {
      const ScalePlan plan({.estimator = estimator, .op = op, .links = links});
      return plan.moments(Scaled(plan, ranks(4, {0, 2, 3}), 4).scales, 0.0f);
    };
    const WeightMoments sum = moments(ReduceOp::sum);
    const WeightMoments average = moments(ReduceOp::avg);
    EXPECT_NEAR(sum.sum, average.sum, 1e-6) << to_string(estimator);
    EXPECT_NEAR(sum.squares, average.squares, 1e-6) << to_string(estimator);
    EXPECT_NEAR(sum.fair_products, average.fair_products, 1e-6) << to_string(estimator);
  }
}

TEST(ScalePlanMoments, ByHandForUnequalWeights) {
  const ScalePlan plan(
      {.estimator = Estimator::zero_fill, .links = weighted_links({5, 7, 1, 5}, 10, 9)});
  const WeightMoments packet = plan.moments(Scaled(plan, ranks(4, {0, 1, 2}), 4).scales, 0.25f);
  EXPECT_NEAR(packet.sum, 13.0 / 18 + 0.25, 1e-6);
  EXPECT_NEAR(packet.sum_squared, packet.sum * packet.sum, 1e-12);
  EXPECT_NEAR(packet.squares, 75.0 / 324, 1e-6);
  EXPECT_NEAR(packet.encoded_squares, 50.0 / 324, 1e-6);
  EXPECT_EQ(packet.control_squares, 0.0625);
  EXPECT_NEAR(packet.fair_products, 75.0 / 324, 1e-6);
  EXPECT_NEAR(packet.fair_squares, 100.0 / 324, 1e-12);
}

TEST(ScalePlanMoments, OverElementsAreExactWhereNothingWasLost) {
  WeightMoments sum;
  const WeightMoments packet =
      ScalePlan({.links = weighted_links({5, 7, 1, 5}, 10, 10)}).complete_moments();
  for (int i = 0; i < 7; ++i) sum.add(packet, 49.0);
  const WeightMoments mean = sum.over(7 * 49.0);
  EXPECT_EQ(mean.sum_squared - 2.0 * mean.sum + 1.0, 0.0);
  EXPECT_EQ(mean.squares - 2.0 * mean.fair_products + mean.fair_squares, 0.0);
  EXPECT_EQ(WeightMoments{}.over(0.0).sum, 0.0);
}

// The owner's own contribution lacks packets if their values are not finite.
TEST(ScalePlanWeights, TheOwnersOwnLossesAreMadeUpForLikeALinks) {
  auto links = equal_links(4, 10, 5);
  links[0].arrived = 8;
  const auto own_weight = [&](Estimator estimator, std::initializer_list<std::size_t> here) {
    return Scaled(ScalePlan({.estimator = estimator, .links = links}), ranks(4, here), 4).scales[0];
  };
  EXPECT_FLOAT_EQ(own_weight(Estimator::horvitz_thompson, {0, 1}), 1.25f / 4);
  // Rank 1 stands for 2/4 of the mean, so the owner stands for the other half.
  EXPECT_FLOAT_EQ(own_weight(Estimator::augmented, {0, 1}), 1.25f / 2);
  EXPECT_FLOAT_EQ(own_weight(Estimator::augmented, {1, 2}), 0.0f);
}

}  // namespace
}  // namespace leeway::estimate
