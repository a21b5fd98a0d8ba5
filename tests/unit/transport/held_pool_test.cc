#include "transport/fault/held_pool.h"

#include <gtest/gtest.h>

#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

TEST(HeldPoolKeep, CopiesTheDatagram) {
  HeldPool pool(2, 100);
  Bytes datagram = pattern(60, 1);
  const HeldIndex index = pool.keep({4, datagram}).value();
  datagram.assign(60, std::byte{0});
  EXPECT_EQ(pool.view(index).from, 4);
  EXPECT_EQ(bytes_of(pool.view(index).bytes), pattern(60, 1));
}

TEST(HeldPoolKeep, AFullPoolRefusesUntilASlotIsFreed) {
  HeldPool pool(2, 100);
  Bytes datagram = pattern(100);
  const HeldIndex first = pool.keep({1, datagram}).value();
  ASSERT_TRUE(pool.keep({1, datagram}).has_value());
  EXPECT_FALSE(pool.keep({1, datagram}).has_value());
  pool.free(first);
  EXPECT_TRUE(pool.keep({1, datagram}).has_value());
}

TEST(HeldPoolKeep, ADatagramLargerThanASlotIsRefused) {
  HeldPool pool(2, 100);
  Bytes datagram = pattern(101);
  EXPECT_FALSE(pool.keep({1, datagram}).has_value());
}

TEST(HeldQueuePop, KeepsOrderAroundTheEndOfItsRing) {
  HeldQueue queue(3);
  HeldIndex next_in = 0;
  HeldIndex next_out = 0;
  for (int round = 0; round < 5; ++round) {
    while (next_in - next_out < 3) queue.push(next_in++);
    EXPECT_EQ(queue.pop(), next_out++);
    EXPECT_EQ(queue.pop(), next_out++);
  }
  EXPECT_EQ(queue.pop(), next_out);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace leeway::transport
