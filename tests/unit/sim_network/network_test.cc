#include "network/network.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/allocations.h"
#include "world.h"

namespace leeway::sim {
namespace {

TEST(Network, AnUnlimitedLinkDeliversAtOnceButNotFromWithinSend) {
  World world("ranks: 3");
  world.send(50, world.packet(0, 1));
  EXPECT_TRUE(world.received.empty());
  EXPECT_EQ(world.network->under_way(Traffic::data), 1u);
  world.run();
  EXPECT_EQ(world.times(), (std::vector<std::int64_t>{50}));
  EXPECT_EQ(world.network->under_way(Traffic::data), 0u);
}

TEST(Network, DelayRateAndQueueAddUp) {
  World world(mesh(std::string(kByteEachNs) + "delay_ms { fixed: 0.001 }"));
  world.send(0, world.packet(0, 1, 100));
  world.send(0, world.packet(0, 1, 50));
  world.send(0, world.packet(1, 0, 70));
  EXPECT_EQ(world.network->waiting_bytes({0}, 1), 150u);
  EXPECT_EQ(world.network->waiting_bytes({99}, 1), 150u);
  EXPECT_EQ(world.network->waiting_bytes({120}, 1), 50u);
  EXPECT_EQ(world.network->waiting_bytes({120}, 2), 0u);
  world.run();
  EXPECT_EQ(world.times(), (std::vector<std::int64_t>{1070, 1100, 1150}));
}

TEST(Network, ASharedPacketPassesACommonLinkOnceAndIsCopiedWhereWaysPart) {
  World world(
      "ranks: 4 topology { star {} }"
      " link { tier: uplink rate_mbps: 8000 } link { tier: downlink rate_mbps: 8000 }"
      " link { tier: downlink to: \"2\" loss { random { p: 1 } } }");
  const std::vector<std::uint32_t> receivers = {1, 2, 3};
  world.network->send_shared({0}, world.packet(0, 1), receivers);
  world.run();
  EXPECT_EQ(world.network->link_counters(world.topology.uplink(0)).passed[kData], 1u);
  EXPECT_EQ(world.network->counters().copied[kData], 2u);
  EXPECT_EQ(world.network->counters().lost[kData], 1u);
  ASSERT_EQ(world.received.size(), 2u);
  EXPECT_EQ(world.received[0].packet.to + world.received[1].packet.to, 1u + 3u);
}

TEST(Network, APartitionCutsOffSomeReceiversOfASharedPacket) {
  World world("ranks: 4");
  world.network->block(0, 3);
  const std::vector<std::uint32_t> receivers = {3, 1, 2};
  world.network->send_shared({0}, world.packet(0, 1), receivers);
  world.run();
  EXPECT_EQ(world.received.size(), 2u);
  EXPECT_EQ(world.count(PacketStep::blocked), 1u);
}

// Sends from every rank over 300 uplinks and downlinks, some of which lose or reorder packets.
void send_all_to_all(World& world) {
  for (std::uint32_t step = 1; step < 300; step += 7) {
    for (std::uint32_t rank = 0; rank < 300; ++rank) {
      world.send(0, world.packet(rank, (rank + step) % 300, 100 + step));
    }
  }
  world.run();
}

TEST(Network, LookingAheadAnnouncesPacketsAndChangesNothing) {
  const std::string star =
      "ranks: 300 topology { star {} }"
      " link { tier: uplink rate_mbps: 80000 delay_ms { fixed: 0.0002 } }"
      " link { tier: downlink rate_mbps: 80000 delay_ms { fixed: 0.0002 } }"
      " link { tier: downlink to: \"7\" loss { random { p: 0.1 } }"
      "        delay_ms { normal { mean: 0.001 deviation: 0.0005 } } }";
  World plain(star), helped(star);
  helped.looks_ahead = true;
  send_all_to_all(plain);
  send_all_to_all(helped);
  EXPECT_EQ(plain.network->trace().value(), helped.network->trace().value());
  EXPECT_EQ(plain.words(), helped.words());
  EXPECT_EQ(plain.expected, 0u);
  EXPECT_GT(helped.expected, helped.received.size() * 9 / 10);
}

TEST(Network, LooksAheadInLargeNetworksOnly) {
  World world("ranks: 3 link { delay_ms { fixed: 1 } }");
  world.looks_ahead = true;
  for (int i = 0; i < 100; ++i) world.send(i, world.packet(0, 1));
  world.run();
  EXPECT_EQ(world.expected, 0u);
}

TEST(Network, LinksFollowEachOther) {
  World world(
      "ranks: 3 topology { star {} } link { tier: uplink rate_mbps: 8000 }"
      " link { tier: downlink rate_mbps: 4000 delay_ms { fixed: 0.0005 } }");
  world.send(0, world.packet(0, 2, 100));
  world.send(0, world.packet(1, 2, 100));
  world.run();
  EXPECT_EQ(world.times(), (std::vector<std::int64_t>{800, 1000}));  // 100 + 200 + 500, 200 more
  EXPECT_EQ(world.received[0].packet.hop, 2u);
}

TEST(Network, PacketsOfAnInstantArriveInTheOrderOfSending) {
  for (const char* scenario :
       {"ranks: 3", "ranks: 3 topology { star {} }",
        "ranks: 3 topology { star {} } link { tier: uplink delay_ms { fixed: 1 } }",
        "ranks: 3 topology { star {} } link { tier: downlink delay_ms { fixed: 1 } }"}) {
    World world(scenario);
    for (std::uint64_t word = 0; word < 20; ++word) {
      world.send(7, numbered(world.packet(static_cast<std::uint32_t>(word % 2), 2), word));
    }
    world.run();
    std::vector<std::uint64_t> of_rank_0, of_rank_1;
    for (const Seen& one : world.received) {
      (one.packet.from == 0 ? of_rank_0 : of_rank_1).push_back(one.packet.word);
    }
    EXPECT_EQ(of_rank_0.size(), 10u);
    EXPECT_TRUE(std::is_sorted(of_rank_0.begin(), of_rank_0.end())) << scenario;
    EXPECT_TRUE(std::is_sorted(of_rank_1.begin(), of_rank_1.end())) << scenario;
  }
}

// The downlink has no delay, but a packet waits there for its event when another comes.
TEST(Network, NoPacketOvertakesOneThatWaitsForItsDelivery) {
  World world(
      "ranks: 3 topology { star {} } link { tier: uplink from: '0' delay_ms { fixed: 1 } }");
  world.send(0, numbered(world.packet(0, 2), 0));
  world.send(1'000'000, numbered(world.packet(1, 2), 1));
  world.run();
  EXPECT_EQ(world.words(), (std::vector<std::uint64_t>{1, 0}));
}

// Returns every packet at once, from within its delivery, until it has gone to and fro ten times.
class Echo : public PacketReceiver {
 public:
  explicit Echo(World& world) : world_(world) {}
  void on_packet(Instant now, const Packet& packet, ByteSpan payload) override {
    EXPECT_EQ(depth_++, 0);  // it is never called from within another delivery
    ++count;
    if (packet.word < 10) {
      Packet reply = world_.packet(packet.to, packet.from);
      reply.word = packet.word + 1;
      for (int i = 0; i < 40; ++i) world_.network->payloads().put(payload);  // moves nothing
      reply.payload = world_.network->payloads().put(payload);
      world_.network->send(now, reply);
    }
    EXPECT_EQ(payload.size(), 3u);
    EXPECT_EQ(payload[1], std::byte{5});
    --depth_;
  }
  int count = 0;

 private:
  World& world_;
  int depth_ = 0;
};

class Counting : public PacketReceiver {
 public:
  void on_packet(Instant, const Packet&, ByteSpan) override { ++count; }
  int count = 0;
};

TEST(Network, AReceiverMaySendFromWithinItsDelivery) {
  for (const char* scenario :
       {"ranks: 2", "ranks: 2 topology { star {} }", "ranks: 2 link { delay_ms { fixed: 1 } }"}) {
    World world(scenario);
    Echo echo(world);
    world.network->attach(Traffic::data, echo);
    const std::vector<std::byte> datagram(3, std::byte{5});
    for (int i = 0; i < 5; ++i) {
      Packet packet = world.packet(0, 1);
      packet.payload = world.network->payloads().put(datagram);
      world.send(0, packet);
    }
    world.run();
    EXPECT_EQ(echo.count, 55);
  }
}

TEST(Network, EachKindOfTrafficHasItsReceiver) {
  World world("ranks: 3");
  World other("ranks: 3");
  world.network->attach(Traffic::cross, other);
  Packet packet = world.packet(0, 1);
  world.send(0, packet);
  packet.traffic = Traffic::cross;
  world.send(0, packet);
  world.run();
  EXPECT_EQ(world.received.size(), 1u);
  EXPECT_EQ(other.received.size(), 1u);
  EXPECT_EQ(world.network->counters().delivered, (std::array<std::uint64_t, 3>{1, 0, 1}));
}

TEST(NetworkDeathTest, RefusesPacketsToOneselfAndUnknownBlocks) {
  World world("ranks: 3");
  EXPECT_DEATH(world.send(0, world.packet(1, 1)), "contract broken");
  EXPECT_DEATH(world.network->unblock(0, 1), "contract broken");
}

TEST(Network, TheTraceTellsRunsApart) {
  const auto trace = [](std::uint64_t seed, std::uint32_t bytes) {
    World world(mesh("rate_mbps: 1000 loss { random { p: 0.3 } }"), seed);
    for (int i = 0; i < 50; ++i) world.send(i * 10, world.packet(0, 1, bytes));
    world.run();
    return world.network->trace().value();
  };
  EXPECT_EQ(trace(1, 100), trace(1, 100));
  EXPECT_NE(trace(1, 100), trace(2, 100));
  EXPECT_NE(trace(1, 100), trace(1, 101));
}

TEST(Network, TheTraceIsTheSameWithAndWithoutAnObserver) {
  const auto trace = [](bool observed) {
    World world(mesh("loss { random { p: 0.3 } } duplicate { p: 0.1 }"));
    if (!observed) world.network->observe(nullptr);
    for (int i = 0; i < 50; ++i) world.send(i * 10, world.packet(0, 1));
    world.run();
    return world.network->trace().value();
  };
  EXPECT_EQ(trace(false), trace(true));
}

TEST(Network, DrawsOfOnePurposeDoNotDependOnAnother) {
  const auto lost_with = [](const std::string& more) {
    World world(mesh("loss { random { p: 0.2 } } " + more));
    std::vector<std::uint64_t> lost;
    for (std::uint64_t word = 0; word < 200; ++word) {
      world.send(0, numbered(world.packet(0, 1), word));
    }
    for (const Seen& one : world.seen) {
      if (one.step == PacketStep::lost) lost.push_back(one.packet.word);
    }
    return lost;
  };
  const std::vector<std::uint64_t> alone = lost_with("");
  EXPECT_GT(alone.size(), 10u);
  EXPECT_EQ(lost_with("duplicate { p: 0.5 } corrupt { p: 0.5 } reorder { p: 0.5 }"), alone);
  EXPECT_EQ(lost_with("delay_ms { normal { mean: 5 deviation: 2 } } rate_mbps: 10"), alone);
}

TEST(Network, TakesNoMemoryInASteadyState) {
  World world(
      "ranks: 8 topology { star {} } link { tier: uplink rate_mbps: 1000 loss { random { p: 0.1 } "
      "} }"
      " link { tier: downlink delay_ms { normal { mean: 0.1 deviation: 0.05 } }"
      " duplicate { p: 0.05 } corrupt { p: 0.05 } }");
  world.network->observe(nullptr);
  Counting counting;
  world.network->attach(Traffic::data, counting);
  const std::vector<std::byte> datagram(100);
  const auto send_many = [&] {
    for (std::uint32_t i = 0; i < 4000; ++i) {
      Packet packet = world.packet(i % 8, (i + 1 + i / 8 % 7) % 8);
      packet.payload = world.network->payloads().put(datagram);
      world.network->send(world.queue.now(), packet);
      if (i % 3 == 0) world.step();
    }
    world.run();
  };
  send_many();
  send_many();
  const std::size_t before = allocations_so_far();
  send_many();
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_GT(counting.count, 10'000);
}

TEST(Network, LinksThatNoPacketCameToHaveCountedNothing) {
  World world("ranks: 16384 endpoint: tcp_ring");
  world.send(0, world.packet(16383, 0));
  world.run();
  EXPECT_EQ(world.network->link_counters(16383u * 16384u).passed[kData], 1u);
  EXPECT_EQ(world.network->link_counters(7).offered[kData], 0u);
  EXPECT_EQ(world.network->waiting_bytes({0}, 7), 0u);
}

}  // namespace
}  // namespace leeway::sim
