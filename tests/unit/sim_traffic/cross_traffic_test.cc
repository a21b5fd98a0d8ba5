#include "traffic/cross_traffic.h"

#include <gtest/gtest.h>

#include "scenario/parse.h"
#include "topology/topology.h"

namespace leeway::sim {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A network with only the cross traffic of a scenario.
class TrafficWorld {
 public:
  explicit TrafficWorld(const std::string& text, std::uint64_t seed = 1) {
    const auto scenario = scenario::parse_text(text, "test").value();
    topology_ = std::make_unique<Topology>(Topology::make(scenario).value());
    network_ = std::move(Network::make(*topology_, seed, queue_, 0).value());
    traffic_ = std::move(CrossTraffic::make(scenario, seed, queue_, *network_).value());
    traffic_->start(queue_.now());
  }

  void run_until(std::int64_t ns) {
    queue_.push({ns}, 0, static_cast<std::uint32_t>(EventKind::rank), 0);
    for (Event event; queue_.pop(event);) {
      if (event.kind == static_cast<std::uint32_t>(EventKind::rank)) return;
      if (event.kind == static_cast<std::uint32_t>(EventKind::network)) network_->on_event(event);
      if (event.kind == static_cast<std::uint32_t>(EventKind::traffic)) traffic_->on_event(event);
    }
  }
  double goodput_mbps(std::size_t entry) const {
    return traffic_->measures(queue_.now())[entry].value;
  }
  CrossTraffic& traffic() { return *traffic_; }
  Network& network() { return *network_; }

 private:
  EventQueue queue_;
  std::unique_ptr<Topology> topology_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<CrossTraffic> traffic_;
};

TEST(CrossTraffic, ConstantSourceHasItsRate) {
  TrafficWorld world("ranks: 2 cross_traffic { from: 0 to: 1 on_off { rate_mbps: 30 off_ms: 0 } }");
  world.run_until(10 * kSecond);
  // Data are 1472 of 1500 bytes on the link. The tolerance covers the start and one packet in
  // flight, both within 10 ms.
  EXPECT_NEAR(world.goodput_mbps(0), 30.0 * 1472 / 1500, 0.05);
}

TEST(CrossTraffic, OnOffSourceHasItsShareOfTheRate) {
  TrafficWorld world(
      "ranks: 2 cross_traffic { from: 0 to: 1 on_off { rate_mbps: 100 on_ms: 5 off_ms: 15 } }");
  world.run_until(10 * kSecond);
  EXPECT_NEAR(world.goodput_mbps(0), 25.0 * 1472 / 1500, 0.2);
}

TEST(CrossTraffic, OffMeansSilent) {
  TrafficWorld world(
      "ranks: 2 cross_traffic { from: 0 to: 1 on_off { rate_mbps: 100 on_ms: 50 off_ms: 50 } }");
  int silent = 0;
  for (std::int64_t ms = 10; ms <= 1010; ms += 10) {
    const std::uint64_t before = world.traffic().delivered_bytes(0);
    world.run_until(ms * 1'000'000);
    silent += world.traffic().delivered_bytes(0) == before ? 1 : 0;
  }
  EXPECT_GE(silent, 38);  // 50 periods, without those that straddle a change
  EXPECT_LE(silent, 52);
}

TEST(CrossTraffic, FlowsFillALine) {
  TrafficWorld world(
      "ranks: 2 topology { pair {} } link { rate_mbps: 50 delay_ms { fixed: 5 } } "
      "cross_traffic { from: 0 to: 1 cubic { flows: 3 } }");
  world.run_until(20 * kSecond);
  EXPECT_GT(world.goodput_mbps(0), 0.95 * 50 * 1448 / 1500);
  EXPECT_LE(world.goodput_mbps(0), 50.0 * 1448 / 1500);
}

TEST(CrossTraffic, ConstantSourceLeavesTheRestToFlows) {
  TrafficWorld world(
      "ranks: 2 topology { pair {} } link { rate_mbps: 50 delay_ms { fixed: 5 } queue { bytes: "
      "62500 } } "
      "cross_traffic { from: 0 to: 1 cubic {} } "
      "cross_traffic { from: 0 to: 1 on_off { rate_mbps: 20 off_ms: 0 } }");
  world.run_until(20 * kSecond);
  EXPECT_NEAR(world.goodput_mbps(0), 30.0 * 1448 / 1500, 3);
  EXPECT_NEAR(world.goodput_mbps(1), 20.0 * 1472 / 1500, 1);
}

TEST(CrossTraffic, SameSeedSameTraceAndAnotherSeedAnother) {
  const std::string text =
      "ranks: 2 topology { pair {} } link { rate_mbps: 50 loss { random { p: 0.01 } } } "
      "cross_traffic { from: 0 to: 1 cubic { flows: 2 } } "
      "cross_traffic { from: 1 to: 0 on_off { rate_mbps: 5 } }";
  const auto hash = [&](std::uint64_t seed) {
    TrafficWorld world(text, seed);
    world.run_until(kSecond);
    return world.network().trace().value();
  };
  EXPECT_EQ(hash(1), hash(1));
  EXPECT_NE(hash(1), hash(2));
}

TEST(CrossTraffic, BeginsDependOnTheEntryNotOnItsNeighbours) {
  const auto alone = [](const std::string& other) {
    TrafficWorld world(std::string("ranks: 4 link { rate_mbps: 100 } "
                                   "cross_traffic { from: 0 to: 1 cubic { flows: 1 } } ") +
                       other);
    world.run_until(kSecond / 5);
    return world.traffic().delivered_bytes(0);
  };
  EXPECT_EQ(alone(""), alone("cross_traffic { from: 2 to: 3 on_off { rate_mbps: 5 } }"));
}

TEST(CrossTraffic, EndlessFlowNeedsTimeWhereNothingLimitsIt) {
  TrafficWorld world("ranks: 2 cross_traffic { from: 0 to: 1 cubic {} }");
  world.run_until(kSecond / 8);
  EXPECT_GT(world.traffic().delivered_bytes(0), 0u);
  EXPECT_LT(world.goodput_mbps(0), 100'000);
}

TEST(CrossTraffic, NoEntriesNoEvents) {
  TrafficWorld world("ranks: 2");
  world.run_until(kSecond);
  EXPECT_EQ(world.network().counters().sent[2], 0u);
  EXPECT_TRUE(world.traffic().measures({kSecond}).empty());
}

}  // namespace
}  // namespace leeway::sim
