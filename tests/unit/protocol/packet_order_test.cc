#include "protocol/packet_order.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

EndpointConfig rank(Rank self, std::uint64_t seed = 7) {
  EndpointConfig config;
  config.self = self;
  config.size = 4;
  config.seed = seed;
  return config;
}

TEST(PacketOrder, BothEndsComputeTheSameKeys) {
  const EndpointConfig sender = rank(0), receiver = rank(1), stranger = rank(1, 8);
  const std::uint64_t key = PacketOrder(sender).inner_key(3, FlowKind::reduce, 0, 1);
  EXPECT_EQ(PacketOrder(receiver).inner_key(3, FlowKind::reduce, 0, 1), key);
  EXPECT_NE(PacketOrder(stranger).inner_key(3, FlowKind::reduce, 0, 1), key);
  EXPECT_NE(PacketOrder(receiver).inner_key(3, FlowKind::reduce, 1, 0), key);
  EXPECT_EQ(PacketOrder(sender).rotation_key(3, FlowKind::spread, 2),
            PacketOrder(receiver).rotation_key(3, FlowKind::spread, 2));
}

TEST(PacketOrder, ACursorVisitsEachPacketOnce) {
  const EndpointConfig config = rank(0);
  RoundPlan plan;
  Round round;
  round.plan = &plan;
  auto cursor =
      PacketOrder(config).cursor(round, FlowKind::reduce, 1, schedule::PacketGrid(1000, 10, 1));
  std::vector<int> visits(100);
  while (const auto index = cursor.next()) ++visits[index->value];
  EXPECT_EQ(visits, std::vector<int>(100, 1));
}

TEST(PacketOrder, MayBeThatOfTheIndices) {
  EndpointConfig config = rank(0);
  config.permute = false;
  EXPECT_EQ(PacketOrder(config).inner_key(3, FlowKind::reduce, 0, 1),
            schedule::PacketCursor::kInOrder);
  EXPECT_EQ(PacketOrder(config).rotation_key(3, FlowKind::reduce, 1),
            schedule::PacketCursor::kInOrder);
}

}  // namespace
}  // namespace leeway::protocol
