#include "collective/contribution_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace leeway::collective {
namespace {

using ::testing::ElementsAre;

TEST(ContributionCounts, OfAReductionWithLosses) {
  ContributionCounts counts;
  counts.reset(3);
  counts.on_reduced({.contributors = 3, .untouched = false}, 100);
  counts.on_reduced({.contributors = 2, .untouched = false}, 100);
  counts.on_reduced({.contributors = 2, .untouched = true}, 40);
  counts.on_left_out();
  CollectiveReport report;
  counts.fill(report);
  EXPECT_THAT(report.contributors.histogram, ElementsAre(0, 0, 2, 1));
  EXPECT_EQ(report.contributors.min, 2u);
  EXPECT_DOUBLE_EQ(report.contributors.mean, 7.0 / 3.0);
  EXPECT_EQ(report.elements_untouched, 40u);
  EXPECT_EQ(report.non_finite, 1u);
  EXPECT_TRUE(std::isnan(report.variance_estimate));
}

TEST(ContributionCounts, OfAReductionThatLostNothing) {
  ContributionCounts counts;
  counts.reset(3);
  CollectiveReport report;
  counts.fill(report);
  EXPECT_EQ(report.contributors.mean, 3.0) << "a rank that owns nothing";
  EXPECT_EQ(report.contributors.min, 3u);
  counts.on_reduced({.contributors = 3, .untouched = false}, 100);
  counts.fill(report);
  EXPECT_EQ(report.variance_estimate, 0.0);
}

TEST(ContributionCounts, TellWhichPeersWereFetchedAndWhichUnheard) {
  std::vector<protocol::ReceiveFlow> flows(5);
  for (protocol::ReceiveFlow& flow : flows) flow.packets = 10;
  flows[2].arrived_count = 10;  // flows[1] is silent
  flows[3].arrived_count = flows[3].repaired = 2;
  flows[4].packets = 0;  // sends nothing
  ContributionCounts counts;
  counts.reset(5);
  EXPECT_FALSE(counts.settle(flows, 0));
  CollectiveReport report;
  counts.fill(report);
  EXPECT_EQ(report.contributions_missing, 1u);
  EXPECT_EQ(report.contributions_fetched, 1u);
  flows[1].arrived_count = flows[3].arrived_count = 10;
  EXPECT_TRUE(counts.settle(flows, 0));
}

}  // namespace
}  // namespace leeway::collective
