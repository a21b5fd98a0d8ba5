// Groups of processes over loopback UDP with injected loss, a tenth of the packets in most tests.
// Exact results must be right to the bit, and lossy ones must have the error that theory predicts.
#include <gtest/gtest.h>

#include <cmath>

#include "integration/exact_expectation.h"
#include "integration/lossy_expectation.h"
#include "integration/rank_group.h"

namespace leeway::integration {
namespace {

const Environment kTenthLost = {{"LEEWAY_FAULT", "loss=0.1,seed=5"}};
constexpr std::chrono::seconds kCollectivesPatience(100);

TEST(Collectives, EveryOperationIsExactUnderLoss) {
  RankGroup group({.scenario = {"collectives"}, .environment = kTenthLost});
  for (const Facts& facts : group.finish(kCollectivesPatience)) {
    expect_right(facts);
    EXPECT_GT(facts["calls"], 180u);
    expect_loss_near(facts, 0.1);
  }
}

TEST(Collectives, EveryOperationIsExactUnderEveryFault) {
  RankGroup group(
      {.scenario = {"collectives", "elements_max=20000"},
       .environment = {
           {"LEEWAY_FAULT", "loss=0.05,burst=4,dup=0.05,reorder=0.05,corrupt=0.02,seed=9"}}});
  for (const Facts& facts : group.finish(kCollectivesPatience)) {
    expect_right(facts);
    EXPECT_GT(facts["counters"]["refused_checksum"], 0u);
    EXPECT_GT(facts["counters"]["duplicate"], 0u);
  }
}

TEST(Collectives, ManyInFlightAreExactUnderLoss) {
  RankGroup group({.scenario = {"in_flight", "operations=40"}, .environment = kTenthLost});
  for (const Facts& facts : group.finish(kCollectivesPatience)) {
    expect_right(facts);
    EXPECT_EQ(facts["calls"], 42u);
  }
}

TEST(Collectives, TwoGroupsInOneProcessDoNotMeet) {
  RankGroup group({.scenario = {"two_groups"}, .environment = kTenthLost});
  for (const Facts& facts : group.finish(kCollectivesPatience)) {
    expect_right(facts);
    expect_right(facts["second"]);
    EXPECT_EQ(facts["refused_epoch"], 0u);
  }
}

TEST(Collectives, ThreadsShareOneGroup) {
  RankGroup group({.scenario = {"threads", "rounds=30"}, .environment = kTenthLost});
  for (const Facts& facts : group.finish(kCollectivesPatience)) {
    expect_right(facts);
    expect_right(facts["ring"]);
  }
}

TEST(Collectives, BestEffortAveragesHaveTheErrorOfTheRatioRule) {
  RankGroup group({.scenario = {"lossy_average", "delivery=best_effort", "rounds=20"},
                   .environment = kTenthLost});
  const auto all = group.finish(kCollectivesPatience);
  expect_lossy_average(all, 0.1);
  for (const Facts& facts : all)
    EXPECT_NEAR(facts["loss_first_pass"].get<double>(), 0.1, 0.03) << facts;
}

// The codec nvfp4 has 4 bits an element, and a tenth of the packets is lost. Averages must be
// unbiased, equal on all ranks, and as noisy as each rank reports for its shard.
TEST(Collectives, QuantisedAveragesUnderLossAreUnbiasedAndTheirNoiseIsReported) {
  RankGroup group(
      {.scenario = {"lossy_average", "codec=nvfp4", "delivery=best_effort", "rounds=20"},
       .environment = kTenthLost});
  const auto all = group.finish(kCollectivesPatience);
  double reported = 0.0;
  for (const Facts& facts : all) {
    ASSERT_TRUE(facts.is_object());
    ASSERT_FALSE(facts.contains("error")) << facts;
    EXPECT_EQ(facts["digest"], all[0]["digest"]) << "ranks hold different bits";
    EXPECT_LT(std::abs(facts["mean_error"].get<double>()),
              5 * facts["standard_error"].get<double>())
        << facts;
    reported += facts["noise_variance"].get<double>() / static_cast<double>(all.size());
  }
  EXPECT_GT(all[0]["mse"].get<double>(), 1.1 * ratio_error(0.1, 4)) << "quantisation adds to loss";
  // Elements of a packet are lost together, so the standard error of the ratio is 4 %.
  EXPECT_NEAR(reported / all[0]["mse"].get<double>(), 1.0, 0.25);
}

TEST(Collectives, BoundedAveragesKeepTheirBound) {
  RankGroup group({.scenario = {"lossy_average", "delivery=bounded", "loss_ppm=50000", "rounds=20"},
                   .environment = kTenthLost});
  const auto all = group.finish(kCollectivesPatience);
  for (const Facts& facts : all) {
    ASSERT_TRUE(facts.is_object());
    EXPECT_EQ(facts["digest"], all[0]["digest"]) << "ranks hold different bits";
    EXPECT_LE(facts["loss"], 0.05);
    EXPECT_LT(facts["mse"], 1.25 * ratio_error(0.05, 4)) << facts;
    EXPECT_NEAR(facts["loss_first_pass"].get<double>(), 0.1, 0.03) << facts;
  }
}

TEST(Collectives, ExactAveragesUnderLossHaveNoError) {
  RankGroup group(
      {.scenario = {"lossy_average", "delivery=exact", "rounds=5"}, .environment = kTenthLost});
  for (const Facts& facts : group.finish(kCollectivesPatience)) {
    EXPECT_LT(facts["nmse"], 1e-13) << facts;  // only rounding to float32
    EXPECT_EQ(facts["loss"], 0.0);
  }
}

}  // namespace
}  // namespace leeway::integration
