#include "protocol/ring_queue.h"

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

}  // namespace
}  // namespace leeway::protocol
