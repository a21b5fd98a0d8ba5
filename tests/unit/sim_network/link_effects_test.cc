// Effects of links on packets: queues, losses, copies, reordering, damage, blocks.
#include <gtest/gtest.h>

#include <algorithm>

#include "world.h"

namespace leeway::sim {
namespace {

TEST(Network, LosesWhatTheQueueHasNoRoomFor) {
  World world(mesh(std::string(kByteEachNs) + "queue { bytes: 250 }"));
  for (int i = 0; i < 4; ++i) world.send(0, world.packet(0, 1, 100));
  EXPECT_EQ(world.count(PacketStep::queue_full), 2u);
  world.run();
  EXPECT_EQ(world.received.size(), 2u);
  const LinkCounters& link = world.network->link_counters(1);
  EXPECT_EQ(link.offered[kData], 4u);
  EXPECT_EQ(link.lost[kData], 2u);
  EXPECT_EQ(link.passed[kData], 2u);
  EXPECT_EQ(link.queue_full, 2u);
  EXPECT_EQ(link.bytes_passed, 200u);
  EXPECT_EQ(link.queue_bytes_max, 200u);
}

TEST(Network, MarksFromTheThresholdOnAndDropsWhatCannotBeMarked) {
  World world(mesh(std::string(kByteEachNs) + "queue { bytes: 1000 ecn_at: 200 }"));
  Packet packet = world.packet(0, 1, 100);
  packet.ecn_capable = true;
  for (int i = 0; i < 4; ++i) world.send(0, packet);
  world.send(0, world.packet(0, 1, 100));
  world.run();
  ASSERT_EQ(world.received.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(world.received[i].packet.marked, i >= 2);
  EXPECT_EQ(world.count(PacketStep::queue_early), 1u);
  EXPECT_EQ(world.network->link_counters(1).marked, 2u);
  EXPECT_EQ(world.network->link_counters(1).queue_early, 1u);
}

TEST(Network, ATrimmedPacketArrivesWithoutItsPayload) {
  World world(mesh(std::string(kByteEachNs) + "queue { bytes: 150 trim { bytes: 30 } }"));
  for (int i = 0; i < 3; ++i) {
    Packet packet = world.packet(0, 1, 100);
    packet.payload = world.network->payloads().put(std::vector<std::byte>(72));
    world.send(0, packet);
  }
  EXPECT_EQ(world.network->payloads().held(), 1u);
  world.run();
  EXPECT_EQ(world.times(), (std::vector<std::int64_t>{100, 130, 160}));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(world.received[i].packet.trimmed, i > 0);
    EXPECT_EQ(world.received[i].packet.bytes, i > 0 ? 30u : 100u);
    EXPECT_EQ(world.received[i].payload.size(), i > 0 ? 0u : 72u);
  }
  EXPECT_EQ(world.network->link_counters(1).trimmed, 2u);
  EXPECT_EQ(world.network->payloads().held(), 0u);
}

TEST(Network, LossesAreAskedWhenTheLastBitIsOut) {
  World world(mesh(std::string(kByteEachNs) + "loss { window { from_ms: 0.0001 to_ms: 0.0002 } }"));
  for (std::uint64_t word = 0; word < 4; ++word) {
    world.send(0, numbered(world.packet(0, 1, 70), word));  // out at 70, 140, 210, 280
  }
  world.run();
  EXPECT_EQ(world.words(), (std::vector<std::uint64_t>{0, 2, 3}));
}

TEST(Network, SharedFateLosesTheSamePacketsInTheOrderOfSending) {
  World world(mesh("loss { every { n: 3 } } shared_fate: true"));
  for (std::uint64_t word = 0; word < 9; ++word) {
    world.send(0, numbered(world.packet(0, 1 + static_cast<std::uint32_t>(word % 2)), word));
  }
  world.run();
  std::vector<std::uint64_t> words = world.words();
  std::sort(words.begin(), words.end());
  EXPECT_EQ(words, (std::vector<std::uint64_t>{0, 1, 3, 4, 6, 7}));
}

// A shared fate's windows follow the clock, although the links' queues have different lengths.
TEST(Network, DownTimesOfASharedFateFollowTheClock) {
  World world(mesh(std::string(kByteEachNs) +
                   "loss { window { from_ms: 0.0001 to_ms: 0.0002 } } shared_fate: true"));
  world.send(0, world.packet(0, 1, 500));  // leaves the queue at 500, after the window
  world.send(0, world.packet(0, 2, 150));  // leaves the queue at 150, within the window
  world.run();
  ASSERT_EQ(world.received.size(), 1u);
  EXPECT_EQ(world.received[0].packet.to, 1u);
}

TEST(Network, CopiesArePacketsOfTheirOwn) {
  World world("ranks: 3 topology { star {} } link { tier: uplink duplicate { p: 1 } }");
  Packet packet = world.packet(0, 1);
  packet.payload = world.network->payloads().put(std::vector<std::byte>(5, std::byte{1}));
  world.send(3, packet);
  world.run();
  ASSERT_EQ(world.received.size(), 2u);
  EXPECT_NE(world.received[0].packet.duplicate, world.received[1].packet.duplicate);
  for (const Seen& one : world.received) EXPECT_EQ(one.payload.size(), 5u);
  EXPECT_EQ(world.network->payloads().held(), 0u);
  EXPECT_EQ(world.network->counters().copied[kData], 1u);
  EXPECT_EQ(world.network->link_counters(0).copied[kData], 1u);
  EXPECT_EQ(world.network->link_counters(0).offered[kData], 1u);
  EXPECT_EQ(world.network->link_counters(4).offered[kData], 2u);
}

TEST(Network, ACopyTakesADelayOfItsOwn) {
  World world(mesh("duplicate { p: 1 } delay_ms { uniform { from: 1 to: 9 } }"));
  for (int i = 0; i < 20; ++i) world.send(0, world.packet(0, 1));
  world.run();
  std::vector<std::int64_t> times = world.times();
  ASSERT_EQ(times.size(), 40u);
  EXPECT_EQ(std::unique(times.begin(), times.end()), times.end());
}

TEST(Network, ReorderingHoldsThePacketBackAndOthersGoOn) {
  World world(mesh("delay_ms { fixed: 1 } reorder { p: 0.2 by_ms: 0.5 }"));
  for (std::uint64_t word = 0; word < 1000; ++word) {
    world.send(static_cast<std::int64_t>(word), numbered(world.packet(0, 1), word));
  }
  world.run();
  std::uint64_t held_back = 0;
  for (const Seen& one : world.received) {
    const std::int64_t took = one.now_ns - static_cast<std::int64_t>(one.packet.word);
    EXPECT_TRUE(took == 1'000'000 || took == 1'500'000);
    held_back += took == 1'500'000;
  }
  EXPECT_NEAR(static_cast<double>(held_back), 200, 64);  // five sigmas
  EXPECT_EQ(world.network->link_counters(1).reordered, held_back);
}

TEST(Network, JitterReordersUnlessOrderIsKept) {
  for (const bool keep : {false, true}) {
    World world(mesh("delay_ms { uniform { from: 1 to: 9 } keep_order: " +
                     std::string(keep ? "true" : "false") + " }"));
    for (std::uint64_t word = 0; word < 100; ++word) {
      world.send(static_cast<std::int64_t>(word * 100'000), numbered(world.packet(0, 1), word));
    }
    world.run();
    const std::vector<std::uint64_t> words = world.words();
    ASSERT_EQ(words.size(), 100u);
    EXPECT_EQ(std::is_sorted(words.begin(), words.end()), keep);
  }
}

TEST(Network, ACorruptPacketHasOneBitOfItsCopyWrong) {
  World world("ranks: 2 link { from: '0' corrupt { p: 1 } } link { duplicate { p: 1 } }");
  const std::vector<std::byte> datagram(10, std::byte{0x5a});
  Packet packet = world.packet(0, 1);
  packet.payload = world.network->payloads().put(datagram);
  world.network->payloads().hold(packet.payload);
  world.send(0, packet);
  world.run();
  ASSERT_EQ(world.received.size(), 2u);
  for (const Seen& one : world.received) {
    EXPECT_TRUE(one.packet.corrupt);
    int bits = 0;
    for (std::size_t i = 0; i < datagram.size(); ++i) {
      bits += std::popcount(std::to_integer<unsigned>(one.payload[i] ^ datagram[i]));
    }
    EXPECT_EQ(bits, 1);
  }
  const ByteSpan kept = world.network->payloads().get(packet.payload);
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), datagram.begin(), datagram.end()));
  EXPECT_EQ(world.network->link_counters(1).corrupted, 1u);
}

TEST(Network, ACorruptPacketWithoutPayloadSaysSo) {
  World world(mesh("corrupt { p: 1 }"));
  world.send(0, world.packet(0, 1));
  world.run();
  ASSERT_EQ(world.received.size(), 1u);
  EXPECT_TRUE(world.received[0].packet.corrupt);
  EXPECT_TRUE(world.received[0].payload.empty());
}

TEST(Network, BlockedPacketsAreLostWhenSentAndWhenTheyWouldArrive) {
  World world(mesh("delay_ms { fixed: 1 }"));
  world.send(0, world.packet(0, 1));  // under way when the partition begins
  world.network->block(0, 1);
  world.send(5, world.packet(0, 1));
  world.send(5, world.packet(1, 0));
  world.send(5, world.packet(0, 2));
  EXPECT_EQ(world.count(PacketStep::blocked), 1u);
  EXPECT_EQ(world.network->under_way(Traffic::data), 3u);
  world.run();
  EXPECT_EQ(world.count(PacketStep::blocked), 2u);
  EXPECT_EQ(world.received.size(), 2u);
  EXPECT_EQ(world.network->counters().lost[kData], 2u);
}

TEST(Network, BlocksNest) {
  World world("ranks: 3");
  world.network->block(0, 1);
  world.network->block(0, 1);
  world.network->unblock(0, 1);
  world.send(0, world.packet(0, 1));
  world.network->unblock(0, 1);
  world.send(0, world.packet(0, 1));
  world.run();
  EXPECT_EQ(world.received.size(), 1u);
}

}  // namespace
}  // namespace leeway::sim
