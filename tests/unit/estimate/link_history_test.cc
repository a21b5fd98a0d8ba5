#include "estimate/link_history.h"

#include <gtest/gtest.h>

namespace leeway::estimate {
namespace {

TEST(LinkHistory, StartsWithLinksThatLoseNothing) {
  const LinkHistory history(3);
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(history.delivery_rate(rank), 1.0);
    for (const std::uint32_t packets : {0u, 1u, 63u, 64u, 1000u})
      EXPECT_EQ(history.heard_rate(rank, packets), 1.0);
  }
}

TEST(LinkHistory, StaysExactlyOneWhileEverythingIsHeard) {
  LinkHistory history(2);
  for (int i = 0; i < 1000; ++i) history.learn_heard(1, 2, 1.0);
  EXPECT_EQ(history.heard_rate(1, 2), 1.0);
}

TEST(LinkHistory, MovesATenthOfTheWayTowardsTheNewestOperation) {
  LinkHistory history(2);
  history.learn_delivery(1, 0.5);
  EXPECT_DOUBLE_EQ(history.delivery_rate(1), 0.95);
  history.learn_delivery(1, 1.0);
  EXPECT_DOUBLE_EQ(history.delivery_rate(1), 0.955);
  EXPECT_EQ(history.delivery_rate(0), 1.0) << "links are apart";
}

// Flows of one packet are often lost entirely by chance, and flows of eight never. So rates of
// flows of one length say nothing of flows of the other.
TEST(LinkHistory, KeepsHeardRatesByLengthUpToAFactorOfTwo) {
  LinkHistory history(2);
  history.learn_heard(1, 2, 0.0);
  EXPECT_FLOAT_EQ(history.heard_rate(1, 2), 0.9f);
  EXPECT_FLOAT_EQ(history.heard_rate(1, 3), 0.9f);
  EXPECT_EQ(history.heard_rate(1, 1), 1.0);
  EXPECT_EQ(history.heard_rate(1, 4), 1.0);
}

// A long flow is not lost entirely by chance. So its rank must not weigh more afterwards.
TEST(LinkHistory, LearnsNothingOfLongFlows) {
  LinkHistory history(2);
  history.learn_heard(1, kShortFlowPackets, 0.0);
  EXPECT_EQ(history.heard_rate(1, kShortFlowPackets), 1.0);
  EXPECT_EQ(history.heard_rate(1, kShortFlowPackets - 1), 1.0);
  history.learn_heard(1, kShortFlowPackets - 1, 0.0);
  EXPECT_FLOAT_EQ(history.heard_rate(1, kShortFlowPackets - 1), 0.9f);
}

}  // namespace
}  // namespace leeway::estimate
