#include "topology/wiring.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "topology_of.h"

namespace leeway::sim {
namespace {

TEST(Wiring, MeshHasALinkForEveryOrderedPair) {
  for (const char* text : {"ranks: 3", "ranks: 3 topology { mesh {} }"}) {
    const Topology topology = topology_of(text);
    EXPECT_EQ(topology.links(), 9u);
    EXPECT_EQ(way(topology, 0, 1), "0>1");
    EXPECT_EQ(way(topology, 1, 0), "1>0");
    EXPECT_EQ(way(topology, 2, 1), "2>1");
    EXPECT_EQ(topology.uplink(0), kArrived);
  }
}

TEST(Wiring, PairHasALinkEachWay) {
  const Topology topology = topology_of("ranks: 2 topology { pair {} }");
  EXPECT_EQ(way(topology, 0, 1), "0>1");
  EXPECT_EQ(way(topology, 1, 0), "1>0");
}

TEST(Wiring, StarHasAnUplinkAndADownlinkPerRank) {
  const Topology topology = topology_of("ranks: 3 topology { star {} }");
  EXPECT_EQ(topology.links(), 6u);
  EXPECT_EQ(way(topology, 0, 2), "uplink 0, downlink 2");
  EXPECT_EQ(way(topology, 2, 1), "uplink 2, downlink 1");
  EXPECT_EQ(topology.name(topology.uplink(1)), "uplink 1");
}

TEST(Wiring, LeafSpineStaysBelowALeafWhereItCan) {
  const Topology topology =
      topology_of("ranks: 5 topology { leaf_spine { hosts_per_leaf: 2 spines: 1 } }");
  EXPECT_EQ(way(topology, 0, 1), "uplink 0, downlink 1");
  EXPECT_EQ(way(topology, 1, 4), "uplink 1, leaf 0>spine 0, spine 0>leaf 2, downlink 4");
  EXPECT_EQ(topology.links(), 10u + 2 * 3);
}

TEST(Wiring, LeafSpineUsesAllSpinesAndKeepsAPairOnOne) {
  const Topology topology =
      topology_of("ranks: 64 topology { leaf_spine { hosts_per_leaf: 16 spines: 4 } }");
  std::map<LinkId, int> pairs;
  for (std::uint32_t from = 0; from < 16; ++from) {
    for (std::uint32_t to = 16; to < 64; ++to) {
      const std::string up = topology.name(topology.next_link(from, to, 1));
      const std::string down = topology.name(topology.next_link(from, to, 2));
      const std::string spine = up.substr(up.find('>') + 1);
      EXPECT_EQ(down, spine + ">leaf " + std::to_string(to / 16));
      ++pairs[topology.next_link(from, to, 1)];
    }
  }
  EXPECT_EQ(pairs.size(), 4u);
  // Each link expects 192 of 768 pairs, with a deviation of 12. The tolerance is five deviations.
  for (const auto& [link, count] : pairs) EXPECT_NEAR(count, 192, 60) << topology.name(link);
}

TEST(Wiring, FatTreeHasOneThreeAndFiveSwitchWays) {
  const Topology topology = topology_of("ranks: 16 topology { fat_tree { k: 4 } }");
  EXPECT_EQ(way(topology, 0, 1), "uplink 0, downlink 1");
  const std::string near = way(topology, 0, 2);
  EXPECT_TRUE(near == "uplink 0, edge 0.0>agg 0.0, agg 0.0>edge 0.1, downlink 2" ||
              near == "uplink 0, edge 0.0>agg 0.1, agg 0.1>edge 0.1, downlink 2")
      << near;
  std::uint32_t hops = 0;
  while (topology.next_link(0, 15, hops) != kArrived) ++hops;
  EXPECT_EQ(hops, 6u);
  EXPECT_EQ(topology.links(), 32u + 4 * 16);
}

// On a way through the core, each switch must be the end of one link and the start of the next, and
// the aggregation switch must have a link to the core switch.
TEST(Wiring, FatTreeLinksFit) {
  const Topology topology = topology_of("ranks: 54 topology { fat_tree { k: 6 } }");
  std::set<std::string> cores;
  for (std::uint32_t from = 0; from < 54; ++from) {
    for (std::uint32_t to = 0; to < 54; ++to) {
      if (from / 9 == to / 9) continue;
      std::vector<std::string> ends;
      for (std::uint32_t hop = 1; hop < 5; ++hop) {
        const std::string name = topology.name(topology.next_link(from, to, hop));
        const std::size_t at = name.find('>');
        const std::string edge =
            "edge " + std::to_string(from / 9) + "." + std::to_string(from / 3 % 3);
        EXPECT_EQ(name.substr(0, at), hop == 1 ? edge : ends.back());
        ends.push_back(name.substr(at + 1));
      }
      EXPECT_EQ(ends[3], "edge " + std::to_string(to / 9) + "." + std::to_string(to / 3 % 3));
      const int aggregation = ends[0].back() - '0';
      EXPECT_EQ(std::stoi(ends[1].substr(5)) / 3, aggregation);
      EXPECT_EQ(ends[2].back(), ends[0].back());
      cores.insert(ends[1]);
    }
  }
  EXPECT_EQ(cores.size(), 9u);
}

TEST(Wiring, RegionsHaveALinkPerOrderedPairAndHalfTheRoundTripOnIt) {
  const Topology topology = topology_of(
      "ranks: 4 group { name: 'eu' ranks: '0-1' } group { name: 'us' ranks: '2-' }"
      " topology { regions { names: ['eu', 'us'] rtt_ms: [0.4, 90, 90, 0.6] } }");
  EXPECT_EQ(way(topology, 0, 1), "uplink 0, eu>eu, downlink 1");
  EXPECT_EQ(way(topology, 1, 2), "uplink 1, eu>us, downlink 2");
  EXPECT_EQ(way(topology, 3, 0), "uplink 3, us>eu, downlink 0");
  EXPECT_EQ(topology.round_trip_ns(0, 1), 400'000);
  EXPECT_EQ(topology.round_trip_ns(1, 2), 90'000'000);
  EXPECT_EQ(topology.round_trip_ns(2, 3), 600'000);
}

TEST(Wiring, RingTakesTheShorterWayAndRisesIfBothAreAsLong) {
  const Topology topology = topology_of("ranks: 6 topology { ring {} }");
  EXPECT_EQ(way(topology, 0, 1), "0>1");
  EXPECT_EQ(way(topology, 1, 0), "1>0");
  EXPECT_EQ(way(topology, 4, 0), "4>5, 5>0");
  EXPECT_EQ(way(topology, 1, 5), "1>0, 0>5");
  EXPECT_EQ(way(topology, 1, 4), "1>2, 2>3, 3>4");
  EXPECT_EQ(way(topology, 4, 1), "4>5, 5>0, 0>1");
  EXPECT_EQ(topology.links(), 12u);
  EXPECT_EQ(topology.uplink(0), kArrived);
}

TEST(Wiring, RingOfTwoHasOneLinkEachWay) {
  const Topology topology = topology_of("ranks: 2 topology { ring {} }");
  EXPECT_EQ(way(topology, 0, 1), "0>1");
  EXPECT_EQ(way(topology, 1, 0), "1>0");
}

TEST(Wiring, EveryWayEndsAndNoLinkComesTwice) {
  for (const char* kind :
       {"mesh {}", "star {}", "leaf_spine { hosts_per_leaf: 3 }", "fat_tree { k: 4 }", "ring {}"}) {
    const Topology topology = topology_of("ranks: 13 topology { " + std::string(kind) + " }");
    for (std::uint32_t from = 0; from < 13; ++from) {
      for (std::uint32_t to = 0; to < 13; ++to) {
        if (from == to) continue;
        std::set<LinkId> links;
        std::uint32_t hop = 0;
        for (; topology.next_link(from, to, hop) != kArrived; ++hop) {
          ASSERT_LT(topology.next_link(from, to, hop), topology.links());
          EXPECT_TRUE(links.insert(topology.next_link(from, to, hop)).second);
        }
        EXPECT_GT(hop, 0u);
        EXPECT_EQ(topology.next_link(from, to, hop), kArrived);
      }
    }
  }
}

}  // namespace
}  // namespace leeway::sim
