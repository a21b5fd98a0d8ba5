#include "collective/request.h"

#include <gmock/gmock.h>

namespace leeway::collective {
namespace {

using ::testing::ElementsAre;

TEST(AddContributors, WeighsMeansByPackets) {
  ContributorStats all{1, 1.5, {0, 2, 2}};
  add_contributors({2, 2.0, {0, 0, 12}}, all);
  EXPECT_EQ(all.min, 1u);
  EXPECT_DOUBLE_EQ(all.mean, (4 * 1.5 + 12 * 2.0) / 16);
  EXPECT_THAT(all.histogram, ElementsAre(0u, 2u, 14u));
}

// A rank that owns nothing of a part lists all ranks in its report, but no packets.
TEST(AddContributors, APartWithoutPacketsCountsForNothing) {
  const ContributorStats empty{2, 2.0, {0, 0, 0}};
  ContributorStats all;
  add_contributors(empty, all);
  EXPECT_EQ(all.mean, 2.0);
  add_contributors({1, 1.0, {0, 3, 0}}, all);
  EXPECT_EQ(all.min, 1u);
  EXPECT_EQ(all.mean, 1.0);
  add_contributors(empty, all);
  EXPECT_EQ(all.mean, 1.0);
  EXPECT_THAT(all.histogram, ElementsAre(0u, 3u, 0u));
}

TEST(SetLosses, AreThoseOfAllPeersTogether) {
  CollectiveReport report;
  report.peers = {{.rank = 1, .expected = 30, .arrived = 30, .repaired = 10},
                  {.rank = 2, .expected = 10, .arrived = 5, .repaired = 5}};
  set_losses(report);
  EXPECT_EQ(report.loss, 1.0 - 35.0 / 40.0);
  EXPECT_EQ(report.loss_first_pass, 1.0 - 20.0 / 40.0);
}

TEST(SetLosses, AreNoneWhereNothingWasExpected) {
  CollectiveReport report;
  report.peers = {{.rank = 1}};
  set_losses(report);
  EXPECT_EQ(report.loss, 0.0);
  EXPECT_EQ(report.loss_first_pass, 0.0);
}

}  // namespace
}  // namespace leeway::collective
