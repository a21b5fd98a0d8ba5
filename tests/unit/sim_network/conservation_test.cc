// Packets must neither appear nor vanish. At every moment of random networks with all faults,
// packets that were sent and copied are delivered, lost or in flight.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "engine/random_stream.h"
#include "world.h"

namespace leeway::sim {
namespace {

constexpr std::uint32_t kRanks = 12;

std::string topology_text(RandomStream& random) {
  const std::array<std::string, 7> kinds = {
      "mesh {}",
      "star {}",
      "leaf_spine { hosts_per_leaf: 3 spines: 2 oversubscription: 3 }",
      "fat_tree { k: 4 }",
      "ring {}",
      "regions { names: ['a', 'b'] rtt_ms: [0.01, 1, 1, 0] }",
      "star {}"};
  return "ranks: 12 group { name: 'a' ranks: '0-4' } group { name: 'b' ranks: '5-' }"
         " topology { " +
         kinds[random.below(kinds.size())] + " }";
}

// Writes a rule that has each setting with probability one half.
std::string rule_text(RandomStream& random, const std::string& tier) {
  std::string text = " link { tier: " + tier;
  const auto maybe = [&](const char* setting) {
    if (random.below(2) == 0) text.append(" ").append(setting);
  };
  maybe("from: '0-6'");
  maybe("rate_mbps: 2000");
  if (random.below(2) == 0) {
    text += " queue { bytes: 4000 ecn_at: 2000 ";
    text += random.below(2) == 0 ? "codel { target_ms: 0.001 interval_ms: 0.05 } }" : "trim {} }";
  }
  maybe("delay_ms { normal { mean: 0.02 deviation: 0.01 } }");
  maybe(
      "loss { random { p: 0.05 } gilbert_elliott { p: 0.05 r: 0.3 } pmtu { bytes: 1400 }"
      " window { from_ms: 0.1 to_ms: 0.15 } }");
  maybe("shared_fate: true");
  maybe("duplicate { p: 0.1 }");
  maybe("reorder { p: 0.1 by_ms: 0.03 }");
  maybe("corrupt { p: 0.1 }");
  return text + " }";
}

std::string scenario_text(RandomStream& random) {
  std::string text = topology_text(random);
  const bool tiers =
      text.find("mesh") == std::string::npos && text.find("ring") == std::string::npos;
  const bool fabric = tiers && text.find("star") == std::string::npos;
  if (!tiers || random.below(2) == 0) text += rule_text(random, "path");
  if (tiers) text += rule_text(random, "uplink") + rule_text(random, "downlink");
  if (fabric) text += rule_text(random, "fabric");
  return text;
}

std::uint64_t sum(const std::array<std::uint64_t, kTrafficKinds>& counts) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  return total;
}

void expect_conserved(World& world) {
  const NetworkCounters& all = world.network->counters();
  for (std::size_t kind = 0; kind < kTrafficKinds; ++kind) {
    const std::uint64_t under_way = world.network->under_way(static_cast<Traffic>(kind));
    ASSERT_EQ(all.sent[kind] + all.copied[kind], all.delivered[kind] + all.lost[kind] + under_way);
    // Counters of links must agree. No packet is between two links.
    std::uint64_t copied = 0, lost = 0, on_links = 0;
    for (LinkId id = 0; id < world.topology.links(); ++id) {
      const LinkCounters& link = world.network->link_counters(id);
      ASSERT_GE(link.offered[kind] + link.copied[kind], link.passed[kind] + link.lost[kind]);
      on_links += link.offered[kind] + link.copied[kind] - link.passed[kind] - link.lost[kind];
      copied += link.copied[kind];
      lost += link.lost[kind];
    }
    ASSERT_EQ(on_links, under_way);
    // Other copies are made where the ways of a multicast packet part.
    ASSERT_LE(copied, all.copied[kind]);
    ASSERT_LE(lost, all.lost[kind]);  // partitions lost the rest
  }
}

// Expects that the packet steps that the observer was told of add up to the network's counters.
void expect_told(const World& world) {
  const NetworkCounters& all = world.network->counters();
  EXPECT_EQ(world.count(PacketStep::sent), sum(all.sent));
  EXPECT_EQ(world.count(PacketStep::duplicated), sum(all.copied));
  EXPECT_EQ(world.count(PacketStep::delivered), sum(all.delivered));
  EXPECT_EQ(world.count(PacketStep::delivered), world.received.size());
  std::uint64_t lost = 0, by_queue = 0;
  for (const Seen& one : world.seen) lost += is_loss(one.step);
  for (LinkId id = 0; id < world.topology.links(); ++id) {
    const LinkCounters& link = world.network->link_counters(id);
    by_queue += link.queue_full + link.queue_early;
  }
  EXPECT_EQ(lost, sum(all.lost));
  // A queue drops a shared packet once, but the observer is told for each receiver.
  EXPECT_GE(world.count(PacketStep::queue_full) + world.count(PacketStep::queue_early), by_queue);
  EXPECT_EQ(world.seen.size(), world.network->trace().records());
}

void send_one(World& world, RandomStream& random, std::int64_t now_ns) {
  Packet packet;
  packet.from = static_cast<std::uint32_t>(random.below(kRanks));
  packet.to = static_cast<std::uint32_t>((packet.from + 1 + random.below(kRanks - 1)) % kRanks);
  packet.bytes = static_cast<std::uint32_t>(60 + random.below(1450));
  packet.traffic = static_cast<Traffic>(random.below(kTrafficKinds));
  packet.ecn_capable = random.below(2) == 0;
  if (random.below(4) > 0) {
    const std::vector<std::byte> datagram(1 + random.below(100), std::byte{1});
    packet.payload = world.network->payloads().put(datagram);
  }
  if (random.below(4) > 0) return world.send(now_ns, packet);
  std::vector<std::uint32_t> receivers;
  for (std::uint32_t to = 0; to < kRanks; ++to) {
    if (to != packet.from && (to == packet.to || random.below(2) == 0)) receivers.push_back(to);
  }
  world.network->send_shared({now_ns}, packet, receivers);
}

class Conservation : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Conservation, HoldsAtEveryMoment) {
  RandomStream random(GetParam(), 0, Purpose::swarm);
  const std::string text = scenario_text(random);
  SCOPED_TRACE(text);
  World world(text, GetParam());
  for (int i = 0; i < 400; ++i) {
    send_one(world, random, world.queue.now().ns);
    if (i == 100) world.network->block(0, 7);
    if (i == 100) world.network->block(7, 0);
    if (i == 300) world.network->unblock(0, 7);
    for (std::uint64_t steps = random.below(6); steps > 0 && world.step(); --steps) {
      ASSERT_NO_FATAL_FAILURE(expect_conserved(world));
    }
    ASSERT_NO_FATAL_FAILURE(expect_conserved(world));
  }
  world.run();
  ASSERT_NO_FATAL_FAILURE(expect_conserved(world));
  expect_told(world);
  EXPECT_EQ(
      sum({world.network->under_way(Traffic::data), world.network->under_way(Traffic::control),
           world.network->under_way(Traffic::cross)}),
      0u);
  EXPECT_EQ(world.network->payloads().held(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Conservation, ::testing::Range<std::uint64_t>(1, 81));

}  // namespace
}  // namespace leeway::sim
