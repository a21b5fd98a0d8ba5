#include "network_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "topology/topology.h"

namespace leeway::lab {
namespace {

std::string refusal(const NetworkArguments& arguments) {
  return std::string(plan_network(arguments).status().text());
}

TEST(NetworkPlan, IsTheScenarioThatASimulationOfItNeeds) {
  NetworkArguments arguments;
  arguments.rate = "100Mb";
  arguments.rtt = "50ms";
  arguments.queue = "10ms";
  arguments.loss = "1%";
  EXPECT_EQ(*scenario_text(arguments),
            "ranks: 4\n"
            "topology { star {} }\n"
            "link { tier: uplink rate_mbps: 100 queue { bytes: 125000 packets: 1048576 } "
            "delay_ms { fixed: 25 } loss { random { p: 0.01 } } }\n"
            "link { tier: downlink rate_mbps: 100 queue { bytes: 125000 packets: 1048576 } }\n");
}

TEST(NetworkPlan, LeavesOutWhatIsNotLimited) {
  EXPECT_EQ(*scenario_text({}),
            "ranks: 4\ntopology { star {} }\nlink { tier: uplink }\nlink { tier: downlink }\n");
  EXPECT_TRUE(plan_network({}).ok());
}

TEST(NetworkPlan, GivesWaysTheRoundTripThatWasAskedFor) {
  for (const int sites : {0, 2, 4}) {
    NetworkArguments arguments;
    arguments.rtt = "40ms";
    arguments.sites = sites;
    arguments.rate = "10Mb";
    const auto scenario = plan_network(arguments);
    ASSERT_TRUE(scenario.ok()) << scenario.status().c_str();
    const auto topology = sim::Topology::make(*scenario);
    ASSERT_TRUE(topology.ok());
    EXPECT_EQ(topology->round_trip_ns(0, 3), 40'000'000) << sites;
    EXPECT_EQ(topology->bits_per_second(0, 3), 10'000'000u) << sites;
    if (sites == 2) {
      EXPECT_EQ(topology->round_trip_ns(0, 1), 0);  // one site
    }
  }
}

TEST(NetworkPlan, TakesQueuesAsBytesOrAsTime) {
  NetworkArguments arguments;
  arguments.rate = "8Mb";
  arguments.queue = "20ms";
  EXPECT_EQ(plan_network(arguments)->link(0).queue().bytes(), 20'000u);
  arguments.queue = "64K";
  EXPECT_EQ(plan_network(arguments)->link(0).queue().bytes(), 65'536u);
  arguments.queue = "0ms";  // too short, because a packet must fit
  EXPECT_EQ(plan_network(arguments)->link(0).queue().bytes(), 1'500u);
}

TEST(NetworkPlan, HasLossesInBurstsAndOfGilbertAndElliott) {
  NetworkArguments arguments;
  arguments.loss = "2%";
  arguments.burst = 8;
  EXPECT_EQ(plan_network(arguments)->link(0).loss().bursts().burst(), 8);
  arguments.loss = "";
  arguments.gilbert = "0.2%,20%,0.8";
  const auto scenario = plan_network(arguments);
  ASSERT_TRUE(scenario.ok()) << scenario.status().c_str();
  EXPECT_DOUBLE_EQ(scenario->link(0).loss().gilbert_elliott().p(), 0.002);
  EXPECT_DOUBLE_EQ(scenario->link(0).loss().gilbert_elliott().one_minus_h(), 0.8);
}

TEST(NetworkPlan, LosesAsOftenBetweenSitesThatShareALine) {
  NetworkArguments arguments;
  arguments.sites = 2;
  arguments.loss = "19%";
  EXPECT_NEAR(plan_network(arguments)->link(0).loss().random().p(), 0.1, 1e-9);  // twice: 19 %
}

TEST(NetworkPlan, TakesFurtherRules) {
  NetworkArguments arguments;
  arguments.links = {"tier: uplink from: \"3\" rate_mbps: 25"};
  const auto scenario = plan_network(arguments);
  ASSERT_TRUE(scenario.ok());
  const auto topology = sim::Topology::make(*scenario);
  EXPECT_EQ(topology->bits_per_second(3, 0), 25'000'000u);
  EXPECT_EQ(topology->bits_per_second(0, 3), 0u);
}

TEST(NetworkPlan, RefusesByTheNameOfTheArgument) {
  const auto with = [](auto change) {
    NetworkArguments arguments;
    change(arguments);
    return refusal(arguments);
  };
  EXPECT_EQ(with([](auto& a) { a.rate = "fast"; }).find("--rate: 'fast' is not a rate"), 0u);
  EXPECT_EQ(with([](auto& a) { a.downlink = "x"; }).find("--downlink: 'x'"), 0u);
  EXPECT_EQ(with([](auto& a) { a.rtt = "50"; }).find("--rtt: '50' is not a time"), 0u);
  EXPECT_EQ(with([](auto& a) { a.loss = "2"; }).find("--loss: '2' is not a share"), 0u);
  EXPECT_EQ(with([](auto& a) { a.gilbert = "1%,,"; }).find("--gilbert: '1%,,' is not p["), 0u);
  EXPECT_EQ(with([](auto& a) { a.ranks = 1; }), "--ranks: 1 is outside 2 to 250");
  EXPECT_EQ(with([](auto& a) { a.sites = 3; }),
            "--sites: 4 ranks cannot be shared evenly by 3 sites (2 or more)");
  EXPECT_EQ(with([](auto& a) {
              a.rate = "1Mb";
              a.queue = "long";
            }),
            "--queue: 'long' is neither a time, such as 10ms, nor a size, such as 64K");
  EXPECT_EQ(with([](auto& a) {
              a.rtt = "10ms";
              a.jitter = "6ms";
            }),
            "--jitter: 6ms is more than half of the round trip of 10ms");
  EXPECT_NE(with([](auto& a) { a.links = {"rat_mbps: 1"}; }).find("did you mean \"rate_mbps\""),
            std::string::npos);
  EXPECT_NE(with([](auto& a) { a.links = {"queue { trim {} } rate_mbps: 1"}; }).find("trims"),
            std::string::npos);
  EXPECT_NE(with([](auto& a) { a.links = {"deliveries: \"/nonexistent\""}; }).find("/nonexistent"),
            std::string::npos);
  EXPECT_NE(with([](auto& a) { a.scenario_path = "/nonexistent.txtpb"; }).find("/nonexistent"),
            std::string::npos);
}

TEST(PathMtu, IsReadWithItsTimeAndRank) {
  EXPECT_EQ(parse_path_mtu("1300")->bytes, 1300u);
  EXPECT_EQ(parse_path_mtu("1300@5s")->from_ns, 5'000'000'000);
  EXPECT_EQ(parse_path_mtu("2:1300@500ms")->rank, 2u);
  EXPECT_FALSE(parse_path_mtu("1300")->rank.has_value());
  for (const char* wrong : {"", "60", "70000", "1300@", "1300@5", "x:1300", ":1300", "-1:1300"}) {
    EXPECT_FALSE(parse_path_mtu(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace leeway::lab
