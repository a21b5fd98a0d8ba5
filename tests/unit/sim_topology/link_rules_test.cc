#include "topology/link_rules.h"

#include <gtest/gtest.h>

#include "topology_of.h"

namespace leeway::sim {
namespace {

std::uint64_t rate(const Topology& topology, const std::string& name) {
  return line_rate_bps(properties_of(topology, name));
}

constexpr const char* kStar = "ranks: 4 topology { star {} } ";
constexpr const char* kLeaves =
    "ranks: 8 topology { leaf_spine { hosts_per_leaf: 2 spines: 2 oversubscription: 4 } } ";
constexpr const char* kRegions =
    "ranks: 4 group { name: 'eu' ranks: '0-1' } group { name: 'us' ranks: '2-' }"
    " topology { regions { names: ['eu', 'us'] rtt_ms: [1, 90, 90, 2] } } ";

TEST(LinkRules, NothingSaidIsUnlimited) {
  const Topology topology = topology_of(kStar);
  const LinkProperties& link = properties_of(topology, "uplink 0");
  EXPECT_FALSE(link.limited);
  EXPECT_TRUE(link.losses.empty());
  EXPECT_TRUE(link.delays.empty());
  EXPECT_EQ(topology.bits_per_second(0, 1), 0u);
  EXPECT_EQ(topology.round_trip_ns(0, 1), 0);
}

TEST(LinkRules, LaterRulesReplaceTheSettingsThatTheyHave) {
  const Topology topology = topology_of(
      "ranks: 3 link { rate_mbps: 100 delay_ms { fixed: 2 } queue { bytes: 5000 } }"
      " link { from: '1' rate_mbps: 10 } link { to: '2' delay_ms { fixed: 7 } }");
  EXPECT_EQ(rate(topology, "0>1"), 100'000'000u);
  EXPECT_EQ(rate(topology, "1>0"), 10'000'000u);
  EXPECT_EQ(properties_of(topology, "1>0").queue.max_bytes, 5000u);
  EXPECT_EQ(properties_of(topology, "1>0").delays[0].delay_ns, 2'000'000);
  EXPECT_EQ(properties_of(topology, "1>2").delays[0].delay_ns, 7'000'000);
  EXPECT_EQ(rate(topology, "1>2"), 10'000'000u);
  EXPECT_EQ(topology.round_trip_ns(1, 2), 9'000'000);
}

TEST(LinkRules, BetweenMeansBothDirections) {
  const Topology topology = topology_of("ranks: 4 link { between: '0-1' and: '2' rate_mbps: 1 }");
  for (const char* name : {"0>2", "1>2", "2>0", "2>1"}) EXPECT_EQ(rate(topology, name), 1'000'000u);
  for (const char* name : {"0>1", "1>0", "2>3", "3>2"}) EXPECT_EQ(rate(topology, name), 0u);
}

TEST(LinkRules, UplinksAreChosenByFromAndDownlinksByTo) {
  const Topology topology = topology_of(
      std::string(kStar) +
      "link { tier: uplink from: '1' rate_mbps: 1 } link { tier: downlink to: '2' rate_mbps: 2 }"
      " link { tier: uplink between: '2' and: '3' rate_mbps: 3 }");
  EXPECT_EQ(rate(topology, "uplink 0"), 0u);
  EXPECT_EQ(rate(topology, "uplink 1"), 1'000'000u);
  EXPECT_EQ(rate(topology, "uplink 2"), 3'000'000u);
  EXPECT_EQ(rate(topology, "uplink 3"), 3'000'000u);
  EXPECT_EQ(rate(topology, "downlink 1"), 0u);
  EXPECT_EQ(rate(topology, "downlink 2"), 2'000'000u);
  EXPECT_EQ(topology.bits_per_second(1, 2), 1'000'000u);
  EXPECT_EQ(topology.bits_per_second(3, 2), 2'000'000u);
  EXPECT_EQ(topology.bits_per_second(0, 1), 0u);
}

TEST(LinkRules, APathBesideTiersIsALinkInFrontOfThePairsThatARuleChooses) {
  const Topology topology =
      topology_of(std::string(kStar) + "link { from: '0' to: '1-2' delay_ms { fixed: 3 } }");
  EXPECT_EQ(way(topology, 0, 1), "0>1, uplink 0, downlink 1");
  EXPECT_EQ(way(topology, 0, 2), "0>2, uplink 0, downlink 2");
  EXPECT_EQ(way(topology, 0, 3), "uplink 0, downlink 3");
  EXPECT_EQ(way(topology, 1, 0), "uplink 1, downlink 0");
  EXPECT_EQ(topology.round_trip_ns(0, 1), 3'000'000);
  EXPECT_EQ(topology.links(), 8u + 16);
  EXPECT_TRUE(topology.properties(8 + 3).delays.empty());  // no link 0>3
}

TEST(LinkRules, FabricIsWhatPacketsBetweenTheSetsPass) {
  const Topology topology = topology_of(std::string(kLeaves) +
                                        "link { tier: fabric from: '0-1' to: '2-5' rate_mbps: 7 }");
  for (const char* name :
       {"leaf 0>spine 0", "leaf 0>spine 1", "spine 0>leaf 1", "spine 1>leaf 2"}) {
    EXPECT_EQ(rate(topology, name), 7'000'000u) << name;
  }
  for (const char* name : {"leaf 1>spine 0", "spine 0>leaf 0", "spine 1>leaf 3"}) {
    EXPECT_EQ(rate(topology, name), 0u) << name;
  }
}

TEST(LinkRules, FabricOfALeafIsNotPassedWithinIt) {
  const Topology topology =
      topology_of(std::string(kLeaves) + "link { tier: fabric from: '0' to: '1' rate_mbps: 7 }");
  for (LinkId link = 0; link < topology.links(); ++link) {
    EXPECT_FALSE(topology.properties(link).limited) << topology.name(link);
  }
}

TEST(LinkRules, FabricOfAFatTree) {
  const Topology topology = topology_of(
      "ranks: 16 topology { fat_tree { k: 4 } }"
      " link { tier: fabric from: '0' to: '2' rate_mbps: 7 }"
      " link { tier: fabric from: '4' to: '8' rate_mbps: 9 }");
  for (const char* name : {"edge 0.0>agg 0.0", "edge 0.0>agg 0.1", "agg 0.0>edge 0.1"}) {
    EXPECT_EQ(rate(topology, name), 7'000'000u) << name;
  }
  for (const char* name : {"edge 1.0>agg 1.1", "agg 1.0>core 0", "agg 1.1>core 3", "core 2>agg 2.1",
                           "agg 2.0>edge 2.0"}) {
    EXPECT_EQ(rate(topology, name), 9'000'000u) << name;
  }
  for (const char* name : {"agg 0.0>core 0", "core 0>agg 0.0", "agg 0.0>edge 0.0",
                           "edge 1.1>agg 1.0", "core 0>agg 1.0"}) {
    EXPECT_EQ(rate(topology, name), 0u) << name;
  }
}

TEST(LinkRules, FabricBetweenRegionsAddsToTheRoundTrip) {
  const Topology topology = topology_of(
      std::string(kRegions) +
      "link { tier: fabric between: 'eu' and: 'us' rate_mbps: 50 delay_ms { fixed: 3 } }"
      " link { tier: fabric from: '2' to: '3' rate_mbps: 60 }");
  EXPECT_EQ(rate(topology, "eu>us"), 50'000'000u);
  EXPECT_EQ(rate(topology, "us>eu"), 50'000'000u);
  EXPECT_EQ(rate(topology, "us>us"), 60'000'000u);
  EXPECT_EQ(rate(topology, "eu>eu"), 0u);
  EXPECT_EQ(topology.round_trip_ns(0, 2), 96'000'000);
  EXPECT_EQ(topology.round_trip_ns(0, 1), 1'000'000);
}

TEST(LinkRules, FabricOfARegionNeedsTwoRanks) {
  const Topology topology =
      topology_of(std::string(kRegions) + "link { tier: fabric from: '0' to: '0' rate_mbps: 5 }");
  EXPECT_EQ(rate(topology, "eu>eu"), 0u);
}

TEST(LinkRules, PathsOfARingAreItsLinks) {
  const Topology topology = topology_of(
      "ranks: 4 topology { ring {} } link { rate_mbps: 5 } link { from: '3' to: '0' rate_mbps: 6 "
      "}");
  EXPECT_EQ(rate(topology, "0>1"), 5'000'000u);
  EXPECT_EQ(rate(topology, "3>0"), 6'000'000u);
  EXPECT_EQ(rate(topology, "0>3"), 5'000'000u);
  EXPECT_EQ(way(topology, 2, 0), "2>3, 3>0");
}

TEST(LinkRules, OversubscriptionSetsTheRateOfTheSpines) {
  const Topology topology = topology_of(std::string(kLeaves) +
                                        "link { tier: uplink rate_mbps: 1000 }"
                                        " link { tier: uplink from: '2' rate_mbps: 3000 }");
  EXPECT_EQ(rate(topology, "leaf 0>spine 1"), 250'000'000u);  // 2 x 1000 / 4 / 2 spines
  EXPECT_EQ(rate(topology, "spine 1>leaf 0"), 250'000'000u);
  EXPECT_EQ(rate(topology, "leaf 1>spine 0"), 500'000'000u);
}

TEST(LinkRules, OversubscriptionGivesWayToARuleAndNeedsUplinksWithARate) {
  const Topology told = topology_of(std::string(kLeaves) +
                                    "link { tier: uplink rate_mbps: 1000 }"
                                    " link { tier: fabric rate_mbps: 40 }");
  EXPECT_EQ(rate(told, "leaf 0>spine 1"), 40'000'000u);
  const Topology unlimited =
      topology_of(std::string(kLeaves) + "link { tier: uplink from: '1-' rate_mbps: 1000 }");
  EXPECT_EQ(rate(unlimited, "leaf 0>spine 1"), 0u);
  EXPECT_EQ(rate(unlimited, "leaf 1>spine 1"), 250'000'000u);
}

TEST(LinkRules, ALeafThatIsNotFullHasTheRateOfAFullOne) {
  const Topology topology = topology_of(
      "ranks: 3 topology { leaf_spine { hosts_per_leaf: 2 spines: 1 } }"
      " link { tier: uplink rate_mbps: 1000 }");
  EXPECT_EQ(rate(topology, "leaf 1>spine 0"), 2'000'000'000u);
}

TEST(LinkRules, SharedFateGoesWithTheLosses) {
  const Topology topology = topology_of(
      "ranks: 4 link { loss { random { p: 0.1 } } shared_fate: true }"
      " link { from: '1' loss { random { p: 0.2 } } } link { from: '2' rate_mbps: 5 }"
      " link { from: '3' shared_fate: false }");
  const auto fate = [&](const char* name) { return properties_of(topology, name).fate; };
  EXPECT_NE(fate("0>1"), LinkProperties::kOwnFate);
  EXPECT_EQ(fate("0>1"), fate("0>2"));
  EXPECT_EQ(fate("0>1"), fate("2>0"));
  EXPECT_EQ(fate("1>0"), LinkProperties::kOwnFate);
  EXPECT_EQ(fate("3>0"), LinkProperties::kOwnFate);
}

TEST(LinkRules, FateIsSharedAmongLinksWithTheSameLosses) {
  const Topology topology = topology_of(
      "ranks: 4 link { loss { random { p: 0.1 } } } link { from: '1' loss { random { p: 0.2 } } }"
      " link { shared_fate: true }");
  const auto fate = [&](const char* name) { return properties_of(topology, name).fate; };
  EXPECT_EQ(fate("0>1"), fate("2>1"));
  EXPECT_EQ(fate("1>0"), fate("1>2"));
  EXPECT_NE(fate("0>1"), fate("1>0"));
  EXPECT_NE(fate("1>0"), LinkProperties::kOwnFate);
}

TEST(LinkRules, EqualLinksShareTheirProperties) {
  const Topology topology =
      topology_of("ranks: 50 link { rate_mbps: 10 } link { from: '7' rate_mbps: 5 }");
  EXPECT_EQ(&properties_of(topology, "0>1"), &properties_of(topology, "3>2"));
  EXPECT_NE(&properties_of(topology, "7>1"), &properties_of(topology, "3>2"));
  // One of the three is for links without any settings.
  EXPECT_EQ(topology.properties_count(), 3u);
}

TEST(LinkRules, RefusesWhatNoLinkCanDoWithTheRule) {
  const Result<Topology> slow = try_topology("ranks: 2 link {} link { rate_mbps: 1e-7 }");
  ASSERT_FALSE(slow.ok());
  EXPECT_NE(slow.status().text().find("link[1]: queue.bits_per_second=0"), std::string::npos)
      << slow.status().text();
  const Result<Topology> codel = try_topology(
      "ranks: 2 link { rate_mbps: 1 queue { codel { target_ms: 5 interval_ms: 1 } } }");
  ASSERT_FALSE(codel.ok());
  EXPECT_NE(codel.status().text().find("link[0]: queue.codel_target_ns"), std::string::npos)
      << codel.status().text();
}

TEST(LinkRules, ManyRanksOfAMeshCostLittle) {
  const Topology topology = topology_of(
      "ranks: 16384 endpoint: tcp_ring group { name: 'a' ranks: '0-99' }"
      " link { rate_mbps: 10 } link { between: 'a' and: '5000-' rate_mbps: 1 }");
  EXPECT_EQ(topology.links(), std::size_t{16384} * 16384);
  EXPECT_EQ(topology.bits_per_second(50, 16383), 1'000'000u);
  EXPECT_EQ(topology.bits_per_second(16383, 50), 1'000'000u);
  EXPECT_EQ(topology.bits_per_second(16383, 200), 10'000'000u);
  EXPECT_EQ(topology.name(topology.next_link(16383, 16382, 0)), "16383>16382");
}

TEST(LinkRules, RefusesMoreKindsOfRanksThanItCanTellApart) {
  std::string text = "ranks: 4096 endpoint: tcp_ring";
  for (int rank = 0; rank < 2100; ++rank) {
    text += " link { from: '" + std::to_string(rank) + "' rate_mbps: 1 }";
  }
  const Result<Topology> made = try_topology(text);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().text().find("kinds of ranks"), std::string::npos);
}

}  // namespace
}  // namespace leeway::sim
