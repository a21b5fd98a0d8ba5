#include "protocol/outbox.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

TEST(Outbox, PeersTakeTurnsAndWaitAtMostOnce) {
  Outbox outbox(4);
  for (const Rank peer : {2, 1, 2, 3, 1}) outbox.queue_data(peer);
  EXPECT_EQ(outbox.next_data(), 2);
  outbox.queue_data(2);
  EXPECT_EQ(outbox.next_data(), 1);
  EXPECT_EQ(outbox.next_data(), 3);
  EXPECT_EQ(outbox.next_data(), 2) << "behind the others";
  EXPECT_EQ(outbox.next_data(), std::nullopt);
}

TEST(Outbox, ControlAndDataAreQueuesOfTheirOwn) {
  Outbox outbox(2);
  outbox.queue_data(1);
  EXPECT_TRUE(outbox.control_empty());
  outbox.queue_control(1);
  EXPECT_FALSE(outbox.control_empty());
  EXPECT_EQ(outbox.next_control(), 1);
  EXPECT_EQ(outbox.next_control(), std::nullopt);
  EXPECT_EQ(outbox.next_data(), 1);
}

TEST(Outbox, EveryRankIsOneMoreDestinationOfData) {
  Outbox outbox(2);
  outbox.queue_data(0);
  outbox.queue_data(kEveryRank);
  outbox.queue_data(kEveryRank);
  outbox.queue_data(1);
  EXPECT_EQ(outbox.next_data(), 0);
  EXPECT_EQ(outbox.next_data(), kEveryRank);
  EXPECT_EQ(outbox.next_data(), 1);
  EXPECT_EQ(outbox.next_data(), std::nullopt);
}

}  // namespace
}  // namespace leeway::protocol
