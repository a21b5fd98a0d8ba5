#include "collective/contribution_scales.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::collective {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Rank 0 averages four packets of three ranks by Estimator::ratio. Two of rank 2's packets were
// lost.
class ScalesOfThreeRanks : public ::testing::Test {
 protected:
  ScalesOfThreeRanks() {
    plan.size = 3;
    plan.reduction.op = ReduceOp::avg;
    plan.reduction.lossy = true;
    for (const Rank rank : {1, 2}) {
      flows[rank].packets = 4;
      flows[rank].arrived.resize(4);
      flows[rank].weight = 1.0f;
      for (const std::uint32_t packet : {0u, 1u, 2u, 3u}) {
        if (rank == 2 && packet >= 2) continue;
        flows[rank].arrived.set(packet);
        ++flows[rank].arrived_count;
      }
    }
    scales.begin(plan, estimate::LinkHistory(3), 4);
  }

  OperationPlan plan;
  std::vector<protocol::ReceiveFlow> flows = std::vector<protocol::ReceiveFlow>(3);
  ContributionScales scales;
};

TEST_F(ScalesOfThreeRanks, AreOneUntilAsked) {
  EXPECT_THAT(scales.values(), Each(1.0f));
}

TEST_F(ScalesOfThreeRanks, OfACompletePacketGoByTheWeights) {
  EXPECT_EQ(scales.units(), 1.0) << "nobody else was heard";
  scales.on_weight(1, 1.0f);
  scales.on_weight(2, 2.0f);
  EXPECT_EQ(scales.units(), 4.0);
  const auto block = scales.complete();
  EXPECT_EQ(block.contributors, 3u);
  EXPECT_FALSE(block.untouched);
  EXPECT_THAT(scales.values(), Each(0.25f));
}

TEST_F(ScalesOfThreeRanks, OfAPartialPacketGoByWhatIsHere) {
  scales.tally(flows);
  scales.build();
  EXPECT_EQ(scales.partial({1}, flows).contributors, 3u);
  EXPECT_THAT(scales.values(), Each(1.0f / 3.0f));
  EXPECT_EQ(scales.partial({2}, flows).contributors, 2u);
  EXPECT_THAT(scales.values(), ElementsAre(0.5f, 0.5f, 0.0f));
  scales.complete();
  EXPECT_THAT(scales.values(), Each(1.0f / 3.0f)) << "not those of the packet before";
}

TEST_F(ScalesOfThreeRanks, OfWhatIsLeftMakeUpForWhatIsLeftOut) {
  scales.on_weight(1, 1.0f);
  scales.on_weight(2, 1.0f);
  auto block = scales.complete();
  block = scales.without(std::vector<Rank>{1}, {0}, block);
  EXPECT_EQ(block.contributors, 2u);
  EXPECT_THAT(scales.values(), ElementsAre(0.5f, 0.0f, 0.5f));
  block = scales.without(std::vector<Rank>{0}, {0}, block);
  EXPECT_EQ(block.contributors, 1u) << "what was left out before stays so";
  EXPECT_THAT(scales.values(), ElementsAre(0.0f, 0.0f, 1.0f));
  scales.complete();
  EXPECT_THAT(scales.values(), Each(1.0f / 3.0f));
}

TEST_F(ScalesOfThreeRanks, WhatIsUncountedIsNotThere) {
  scales.tally(flows);
  EXPECT_TRUE(scales.has(1, {3}, flows));
  EXPECT_FALSE(scales.has(2, {3}, flows)) << "it was lost";
  scales.uncount(1, {3});
  scales.uncount(0, {2});
  EXPECT_FALSE(scales.has(1, {3}, flows));
  EXPECT_FALSE(scales.has(0, {2}, flows));
  EXPECT_TRUE(scales.has(0, {3}, flows));
  scales.build();
  EXPECT_EQ(scales.partial({3}, flows).contributors, 1u);
  EXPECT_THAT(scales.values(), ElementsAre(1.0f, 0.0f, 0.0f));
}

TEST_F(ScalesOfThreeRanks, AnAverageDoesNotUseARankWithoutUnits) {
  flows[1].weight = 0.0f;
  scales.tally(flows);
  EXPECT_FALSE(scales.uses(1));
  EXPECT_TRUE(scales.uses(2));
  plan.reduction.op = ReduceOp::sum;
  EXPECT_TRUE(scales.uses(1));
}

}  // namespace
}  // namespace leeway::collective
