// Tests the scales of one packet by estimator; scale_plan_weights_test.cc has weights and edges.
// Published vectors and expectations are in estimator_noise_test.cc, estimator_bias_test.cc and
// realised_rate_test.cc.
#include "estimate/scale_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "unit/estimate/weighted_links.h"

namespace leeway::estimate {
namespace {

using testing::equal_links;
using testing::first_ranks;
using testing::kAllEstimators;
using testing::ranks;
using testing::Scaled;
using testing::weighted_links;

// --- complete_scales -----------------------------------------------------------------------------

TEST(ScalePlanCompleteScales, AreTheSameForEveryEstimator) {
  const auto links = weighted_links({1.0, 2.0, 5.0}, 4, 4);
  for (const Estimator estimator : kAllEstimators) {
    std::vector<float> scales(3);
    ScalePlan({.estimator = estimator, .op = ReduceOp::avg, .links = links})
        .complete_scales(scales);
    for (const float scale : scales) EXPECT_EQ(scale, 0.125f) << to_string(estimator);
    ScalePlan({.estimator = estimator, .op = ReduceOp::sum, .links = equal_links(3, 4, 4)})
        .complete_scales(scales);
    for (const float scale : scales) EXPECT_EQ(scale, 1.0f) << to_string(estimator);
  }
}

TEST(ScalePlanCompleteScales, EqualTheScalesOfAFullPacketWhenNothingWasLost) {
  const auto links = weighted_links({1.0, 2.0, 5.0, 0.0}, 4, 4);
  for (const Estimator estimator : kAllEstimators) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
      const ScalePlan plan({.estimator = estimator, .op = op, .links = links, .owner = 1});
      std::vector<float> complete(4);
      plan.complete_scales(complete);
      const Scaled packet(plan, first_ranks(4, 4), 4, 17);
      for (std::size_t rank = 0; rank < 4; ++rank) {
        EXPECT_FLOAT_EQ(packet.scales[rank], complete[rank])
            << to_string(estimator) << " " << to_string(op);
      }
      EXPECT_EQ(packet.block.contributors, 4u);
      EXPECT_FALSE(packet.block.untouched);
      const WeightMoments exact = plan.complete_moments();
      const WeightMoments moments = plan.moments(packet.scales, packet.block.control);
      EXPECT_FLOAT_EQ(static_cast<float>(moments.sum), 1.0f);
      EXPECT_FLOAT_EQ(static_cast<float>(moments.squares), static_cast<float>(exact.squares));
      EXPECT_FLOAT_EQ(static_cast<float>(moments.fair_products),
                      static_cast<float>(exact.fair_squares));
    }
  }
}

// If the owner's own contribution is not finite, its scale is 0, and the others are scaled as
// usual.
TEST(ScalePlanScales, OfAPacketWithoutTheOwnersOwn) {
  const auto links = equal_links(3, 4, 4);
  for (const Estimator estimator : kAllEstimators) {
    const ScalePlan plan({.estimator = estimator, .op = ReduceOp::avg, .links = links, .owner = 1});
    std::vector<float> scales(3);
    const std::uint64_t mask = 0b101;
    const BlockScales block = plan.scales({&mask, 1}, 0, scales);
    const bool fills_zero = estimator == Estimator::zero_fill ||
                            estimator == Estimator::horvitz_thompson ||
                            estimator == Estimator::augmented;
    const float each = fills_zero ? 1.0f / 3.0f : 0.5f;
    EXPECT_EQ(scales, (std::vector<float>{each, 0.0f, each})) << to_string(estimator);
    EXPECT_EQ(block.contributors, 2u);
  }
}

TEST(ScalePlanCompleteScales, AreZeroWhenNobodyHasUnits) {
  std::vector<float> scales(2, 7.0f);
  EXPECT_TRUE(
      ScalePlan({.links = weighted_links({0.0, 0.0}, 4, 4)}).complete_scales(scales).untouched);
  EXPECT_EQ(scales, std::vector<float>(2, 0.0f));
  EXPECT_FALSE(
      ScalePlan({.links = weighted_links({0.0, 2.0}, 4, 4)}).complete_scales(scales).untouched);
  EXPECT_EQ(scales, (std::vector<float>{0.0f, 0.5f}));
}

// --- scales, by estimator ------------------------------------------------------------------------

TEST(ScalePlanScales, ZeroFillKeepsTheLossFreeScaleOfWhatArrived) {
  const Scaled packet(
      ScalePlan({.estimator = Estimator::zero_fill, .links = weighted_links({1, 2, 5})}),
      ranks(3, {0, 2}), 3);
  EXPECT_EQ(packet.scales, (std::vector<float>{0.125f, 0.0f, 0.125f}));
  EXPECT_EQ(packet.block.contributors, 2u);
}

TEST(ScalePlanScales, RatioDividesByTheWeightThatArrived) {
  const Scaled packet(
      ScalePlan({.estimator = Estimator::ratio, .links = weighted_links({1, 2, 7})}),
      ranks(3, {0, 2}), 3);
  EXPECT_EQ(packet.scales, (std::vector<float>{0.125f, 0.0f, 0.125f}));
}

TEST(ScalePlanScales, StratifiedKeepsTheOwnersShareAndRescalesTheOthersAmongThemselves) {
  const auto links = weighted_links({2, 1, 3, 2});
  const Scaled packet(ScalePlan({.estimator = Estimator::stratified, .links = links}),
                      ranks(4, {0, 1, 3}), 4);
  EXPECT_FLOAT_EQ(packet.scales[0], 1.0f / 8);  // own sum over all 8 units
  EXPECT_FLOAT_EQ(packet.scales[1],
                  6.0f / 8 / 3);  // the share of all others, divided by the 3 units that arrived
  EXPECT_EQ(packet.scales[2], 0.0f);
  EXPECT_FLOAT_EQ(packet.scales[3], 6.0f / 8 / 3);
}

TEST(ScalePlanScales, StratifiedFallsBackToTheOwnerAlone) {
  const auto links = weighted_links({2, 1, 3});
  const Scaled average(ScalePlan({.estimator = Estimator::stratified, .links = links}),
                       ranks(3, {0}), 3);
  EXPECT_EQ(average.scales, (std::vector<float>{0.5f, 0.0f, 0.0f}));
  const Scaled sum(
      ScalePlan({.estimator = Estimator::stratified, .op = ReduceOp::sum, .links = links}),
      ranks(3, {0}), 3);
  EXPECT_EQ(sum.scales, (std::vector<float>{3.0f, 0.0f, 0.0f}));
}

TEST(ScalePlanScales, HorvitzThompsonRescalesEachLinkByItsRealisedRate) {
  auto links = weighted_links({1, 1, 1, 1});
  links[1].arrived = 5;
  links[2].arrived = 10;
  const ScalePlan plan({.estimator = Estimator::horvitz_thompson, .links = links});
  const Scaled packet(plan, ranks(4, {0, 1, 2}), 4);
  EXPECT_EQ(packet.scales, (std::vector<float>{0.25f, 0.5f, 0.25f, 0.0f}));
}

TEST(ScalePlanScales, HorvitzThompsonDividesByTheRateAtWhichSuchFlowsAreHeard) {
  auto links = equal_links(3, 4, 2);
  links[1].heard_rate = 0.8;
  links[2].heard_rate = 0.5;
  const ScalePlan plan(
      {.estimator = Estimator::horvitz_thompson, .op = ReduceOp::sum, .links = links});
  EXPECT_EQ(Scaled(plan, first_ranks(3, 3), 3).scales, (std::vector<float>{1.0f, 2.5f, 4.0f}));
  EXPECT_TRUE(plan.estimated_rates());
}

TEST(ScalePlanScales, HeardRatesAreClampedAwayFromZeroAndFromAboveOne) {
  auto links = equal_links(3, 1, 1);
  links[1].heard_rate = 0.0;
  links[2].heard_rate = 1.5;
  const ScalePlan plan(
      {.estimator = Estimator::horvitz_thompson, .op = ReduceOp::sum, .links = links});
  EXPECT_EQ(Scaled(plan, first_ranks(3, 3), 3).scales,
            (std::vector<float>{1.0f, 1.0f / kHeardRateMin, 1.0f}));
}

TEST(ScalePlanScales, RatesOfEarlierOperationsEnterWhereTheyAreSaidTo) {
  auto links = equal_links(3, 1, 1);
  links[0].heard_rate = links[0].prior_rate = 0.25;  // the owner's own rates do not matter
  const auto uses_rates = [&](Estimator estimator) {
    return ScalePlan({.estimator = estimator, .links = links}).estimated_rates();
  };
  EXPECT_FALSE(uses_rates(Estimator::horvitz_thompson));
  EXPECT_TRUE(uses_rates(Estimator::symmetric_ratio)) << "links of one packet";
  links[1].heard_rate = 0.9;
  EXPECT_TRUE(uses_rates(Estimator::augmented));
  EXPECT_FALSE(uses_rates(Estimator::ratio));
  for (LinkTally& link : links) link.sent = link.arrived = 2;
  EXPECT_FALSE(uses_rates(Estimator::symmetric_ratio));
}

TEST(ScalePlanScales, HorvitzThompsonTakesNoPriorRate) {
  for (const std::uint32_t packets : {1u, 4u}) {
    auto links = equal_links(2, packets, packets);
    links[1].prior_rate = 0.1;
    const ScalePlan plan(
        {.estimator = Estimator::horvitz_thompson, .op = ReduceOp::sum, .links = links});
    EXPECT_EQ(Scaled(plan, first_ranks(2, 2), 2).scales[1], 1.0f);
  }
}

TEST(ScalePlanScales, ALinkThatCountsNoArrivalsScalesNothing) {
  // A mask that contradicts the counts is the caller's mistake, but must not divide by zero.
  for (const std::uint32_t sent : {1u, 10u}) {
    const ScalePlan plan(
        {.estimator = Estimator::horvitz_thompson, .links = equal_links(2, sent, 0)});
    EXPECT_EQ(Scaled(plan, first_ranks(2, 2), 2).scales, (std::vector<float>{0.5f, 0.0f}));
  }
}

TEST(ScalePlanScales, AugmentedGivesTheControlTheShareThatIsMissing) {
  const ScalePlan plan(
      {.estimator = Estimator::augmented, .links = equal_links(4, 5, 4), .external_control = true});
  const Scaled two(plan, ranks(4, {0, 1}), 4);
  EXPECT_EQ(two.scales, (std::vector<float>{0.25f, 0.3125f, 0.0f, 0.0f}));
  EXPECT_FLOAT_EQ(two.block.control, 1.0f - 0.5625f);
  // If all rescaled contributions arrive, their sum is too large, so the control variate is
  // subtracted.
  EXPECT_FLOAT_EQ(Scaled(plan, first_ranks(4, 4), 4).block.control, -3 * 0.0625f);
}

TEST(ScalePlanScales, AugmentedWithoutExternalControlFoldsTheOwnersMeanIntoItsScale) {
  const auto links = weighted_links({2, 1, 1}, 5, 4);
  const ScalePlan own({.estimator = Estimator::augmented, .links = links});
  const ScalePlan external(
      {.estimator = Estimator::augmented, .links = links, .external_control = true});
  const std::vector<double> contributions = {6.0, 5.0, 7.0};
  for (const auto& mask :
       {ranks(3, {0}), ranks(3, {0, 1}), ranks(3, {0, 2}), ranks(3, {0, 1, 2})}) {
    const Scaled folded(own, mask, 3);
    EXPECT_EQ(folded.block.control, 0.0f);
    EXPECT_NEAR(folded.result(contributions),
                Scaled(external, mask, 3).result(contributions, 6.0 / 2), 1e-6);
  }
}

TEST(ScalePlanScales, AugmentedOfASumTakesAGuessOfTheSum) {
  const ScalePlan plan({.estimator = Estimator::augmented,
                        .op = ReduceOp::sum,
                        .links = equal_links(4, 4, 2),
                        .external_control = true});
  const Scaled packet(plan, ranks(4, {0, 3}), 4);
  EXPECT_EQ(packet.scales, (std::vector<float>{1.0f, 0.0f, 0.0f, 2.0f}));
  EXPECT_FLOAT_EQ(packet.block.control, 0.25f);
  const std::vector<double> threes(4, 3.0);
  EXPECT_NEAR(packet.result(threes, 12.0), 12.0, 1e-6)
      << "a right guess is left alone whatever is lost";
}

TEST(ScalePlanScales, AnOwnerWithoutUnitsHasNoMeanToUseAsControl) {
  const auto links = weighted_links({0, 1, 1}, 5, 4);
  const Scaled augmented(ScalePlan({.estimator = Estimator::augmented, .links = links}),
                         ranks(3, {0, 1}), 3);
  const Scaled plain(ScalePlan({.estimator = Estimator::horvitz_thompson, .links = links}),
                     ranks(3, {0, 1}), 3);
  EXPECT_EQ(augmented.scales, plain.scales);
  EXPECT_EQ(augmented.block.control, 0.0f);
}

// --- symmetric ratio -----------------------------------------------------------------------------

TEST(ScalePlanScales, SymmetricRatioDropsTheOwnerInSomeBlocksAndIsTheRatioRuleInTheOthers) {
  const auto links = equal_links(3, 10, 7);
  const ScalePlan plan({.estimator = Estimator::symmetric_ratio, .links = links});
  const auto [kept, lost] = testing::virtual_loss_blocks(plan, 3, 0);
  const Scaled with(plan, ranks(3, {0, 2}), 3, kept);
  EXPECT_EQ(with.scales, (std::vector<float>{0.5f, 0.0f, 0.5f}));
  EXPECT_EQ(with.block.contributors, 2u);
  const Scaled without(plan, ranks(3, {0, 2}), 3, lost);
  EXPECT_EQ(without.scales, (std::vector<float>{0.0f, 0.0f, 1.0f}));
  EXPECT_EQ(without.block.contributors, 1u);
}

TEST(ScalePlanScales, SymmetricRatioOfNothingIsZeroAndUntouched) {
  const ScalePlan plan({.estimator = Estimator::symmetric_ratio, .links = equal_links(3, 10, 7)});
  const Scaled nothing(plan, ranks(3, {0}), 3, testing::virtual_loss_blocks(plan, 3, 0).second);
  EXPECT_EQ(nothing.scales, std::vector<float>(3, 0.0f));
  EXPECT_TRUE(nothing.block.untouched);
  EXPECT_EQ(nothing.block.contributors, 0u);
}

std::vector<bool> virtual_losses(const ScalePlan& plan, Rank owner, std::uint32_t blocks,
                                 std::size_t present = 4) {
  std::vector<bool> lost;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    lost.push_back(Scaled(plan, first_ranks(4, present), 4, block).scales[owner] == 0.0f);
  }
  return lost;
}

void expect_virtual_loss(const ScalePlan& plan, std::size_t present, double wanted) {
  constexpr std::uint32_t kBlocks = 20'000;
  const auto lost = virtual_losses(plan, 0, kBlocks, present);
  const double rate = std::count(lost.begin(), lost.end(), true) / static_cast<double>(kBlocks);
  EXPECT_NEAR(rate, wanted, 4 * std::sqrt(wanted * (1 - wanted) / kBlocks)) << "4 sigma";
}

TEST(ScalePlanScales, VirtualLossHasTheRateOfTheLinksOverTheOtherPackets) {
  auto links = equal_links(4, 10, 9);
  links[2].arrived = 5;
  links[3].arrived = 7;  // 9 of 30 packets lost
  const ScalePlan plan(
      {.estimator = Estimator::symmetric_ratio, .links = links, .seed = 11, .step = 5});
  expect_virtual_loss(plan, 4, 9.0 / 27);  // all of them were lost in other packets
  expect_virtual_loss(plan, 2, 7.0 / 27);  // two of them were lost in this packet
  expect_virtual_loss(plan, 1, 6.0 / 27);
}

TEST(ScalePlanScales, VirtualLossOfOnePacketLinksHasTheRateOfEarlierOperations) {
  auto links = equal_links(4, 1, 1);
  links[1].prior_rate = 0.9;
  links[2].prior_rate = 0.5;  // mean loss of three (.1 + .5 + 0) / 3
  const ScalePlan plan({.estimator = Estimator::symmetric_ratio, .links = links});
  expect_virtual_loss(plan, 4, 0.2);
}

// The owner's weight in a packet must not depend on which others arrived. If two thirds arrive, all
// expected weights must be equal over all outcomes.
TEST(ScalePlanScales, SymmetricRatioIsNotTiltedByItsOwnPacket) {
  constexpr double kRate = 2.0 / 3;
  constexpr std::uint32_t kBlocks = 20'000;
  double own = 0.0;
  double other = 0.0;
  for (std::uint64_t others = 0; others < 8; ++others) {
    auto links = equal_links(4, 2, 1);
    links[3].arrived = 0;
    double probability = 1.0;
    for (std::size_t rank = 1; rank < 4; ++rank) {
      const bool here = (others >> (rank - 1) & 1) != 0;
      links[rank].arrived += here;
      probability *= here ? kRate : 1 - kRate;
    }
    const ScalePlan plan({.estimator = Estimator::symmetric_ratio, .links = links, .seed = 3});
    const std::uint64_t mask = others << 1 | 1;
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      const Scaled scaled(plan, {&mask, 1}, 4, block);
      own += probability * scaled.scales[0] / kBlocks;
      other += probability * scaled.scales[1] / kBlocks;
    }
  }
  EXPECT_NEAR(own, other, 0.01) << "counting the packet itself tilts them by 0.025";
}

TEST(ScalePlanScales, VirtualLossIsKeyedBySeedStepAndOwner) {
  const auto losses = [](std::uint64_t seed, std::uint32_t step, Rank owner) {
    const std::vector<LinkTally> links(4, {.sent = 10, .arrived = 5, .weight = 1.0});
    return virtual_losses(ScalePlan({.estimator = Estimator::symmetric_ratio,
                                     .links = links,
                                     .owner = owner,
                                     .seed = seed,
                                     .step = step}),
                          owner, 256);
  };
  const auto base = losses(1, 1, 0);
  EXPECT_EQ(base, losses(1, 1, 0));
  EXPECT_NE(base, losses(2, 1, 0));
  EXPECT_NE(base, losses(1, 2, 0));
  EXPECT_NE(base, losses(1, 1, 1));
}

TEST(ScalePlanScales, VirtualLossLeavesTheOtherEstimatorsAlone) {
  for (const Estimator estimator : kAllEstimators) {
    if (estimator == Estimator::symmetric_ratio) continue;
    const ScalePlan plan({.estimator = estimator, .links = equal_links(4, 10, 5)});
    const auto first = Scaled(plan, ranks(4, {0, 1}), 4, 0).scales;
    for (std::uint32_t block = 1; block < 64; ++block) {
      EXPECT_EQ(Scaled(plan, ranks(4, {0, 1}), 4, block).scales, first) << to_string(estimator);
    }
  }
}

}  // namespace
}  // namespace leeway::estimate
