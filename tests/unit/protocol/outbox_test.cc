#include "protocol/outbox.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

TEST(RingQueue, GivesBackInOrderAcrossItsEnd) {
  RingQueue<int> queue(3);
  int next_in = 0, next_out = 0;
  for (int turn = 0; turn < 10; ++turn) {
    while (next_in - next_out < 3) queue.push(next_in++);
    EXPECT_EQ(queue.pop(), next_out++);
    EXPECT_EQ(queue.pop(), next_out++);
  }
  EXPECT_EQ(queue.pop(), next_out++);
  EXPECT_TRUE(queue.empty());
}

TEST(RingQueueDeathTest, BreaksTheContractWhenOverfilledOrPoppedEmpty) {
  EXPECT_DEATH(RingQueue<int>(2).pop(), "contract broken");
  EXPECT_DEATH(
      {
        RingQueue<int> queue(1);
        queue.push(1);
        queue.push(2);
      },
      "contract broken");
}

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
