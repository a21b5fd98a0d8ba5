#include "wan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/allocations.h"
#include "unit/wan/ip_samples.h"

namespace leeway::lab {
namespace {

constexpr Address kFirst = 0x0a580001;
constexpr std::int64_t kMs = 1'000'000;

// A network with a hand clock that records the packets that come out.
class Lab : public PacketSink {
 public:
  struct Arrival {
    std::int64_t ns = 0;
    std::uint32_t rank = 0;
    std::size_t bytes = 0;
    bool marked = false;
  };

  explicit Lab(const NetworkArguments& network, WanOptions options = {}) {
    options.first_address = kFirst;
    auto scenario = plan_network(network);
    EXPECT_TRUE(scenario.ok()) << scenario.status().c_str();
    auto made = Wan::make(*scenario, options, *this);
    EXPECT_TRUE(made.ok()) << made.status().c_str();
    wan = std::move(*made);
  }

  void deliver(Instant due, std::uint32_t rank, ByteSpan packet, bool) override {
    if (!recording) return;
    const bool marked = (std::to_integer<unsigned>(packet[1]) & 3) == 3;
    arrivals.push_back({due.ns, rank, packet.size(), marked});
  }

  void send(std::int64_t ns, std::uint32_t from, std::uint32_t to, std::size_t bytes,
            unsigned ecn = 0) {
    wan->run_until({ns});
    wan->take({ns}, from, ip_packet(kFirst + from, kFirst + to, bytes, ecn));
  }

  std::unique_ptr<Wan> wan;
  std::vector<Arrival> arrivals;
  bool recording = true;
};

NetworkArguments network(const char* rate, const char* rtt, const char* queue) {
  NetworkArguments arguments;
  arguments.rate = rate;
  arguments.rtt = rtt;
  arguments.queue = queue;
  arguments.downlink = "none";
  return arguments;
}

TEST(Wan, DeliversAfterTheTimeOnTheLineAndHalfOfTheRoundTrip) {
  Lab lab(network("12Mb", "50ms", "100ms"));
  lab.send(0, 0, 2, 1500);  // 1 ms on the line
  lab.send(0, 0, 1, 1500);
  EXPECT_EQ(lab.wan->next_due(), Instant{26 * kMs});
  lab.wan->run_until({26 * kMs - 1});
  EXPECT_TRUE(lab.arrivals.empty());
  lab.wan->run_until({40 * kMs});
  ASSERT_EQ(lab.arrivals.size(), 2u);
  EXPECT_EQ(lab.arrivals[0].ns, 26 * kMs);
  EXPECT_EQ(lab.arrivals[0].rank, 2u);
  EXPECT_EQ(lab.arrivals[1].ns, 27 * kMs);
  EXPECT_EQ(lab.arrivals[1].rank, 1u);
  EXPECT_EQ(lab.wan->next_due(), Instant::infinite_future());
}

TEST(Wan, KeepsItsOwnTimesWhenTheCallerIsLate) {
  NetworkArguments arguments = network("12Mb", "50ms", "100ms");
  arguments.downlink = "6Mb";
  Lab lab(arguments);
  lab.send(0, 0, 2, 1500);
  lab.send(0, 1, 2, 1500);
  lab.wan->run_until({500 * kMs});
  ASSERT_EQ(lab.arrivals.size(), 2u);
  EXPECT_EQ(lab.arrivals[0].ns, 28 * kMs);  // 1 up, 25 in flight, 2 down
  EXPECT_EQ(lab.arrivals[1].ns, 30 * kMs);
}

TEST(Wan, TellsWhetherALineIsBusy) {
  Lab lab(network("12Mb", "0ms", "10ms"));
  EXPECT_FALSE(lab.wan->line_is_busy({0}, 0));
  lab.send(0, 0, 1, 1500);  // 1 ms on the line
  EXPECT_TRUE(lab.wan->line_is_busy({kMs - 1}, 0));
  EXPECT_FALSE(lab.wan->line_is_busy({kMs - 1}, 1));
  EXPECT_FALSE(lab.wan->line_is_busy({kMs}, 0));
}

TEST(Wan, DropsAndCountsWhatTheQueueCannotHold) {
  Lab lab(network("12Mb", "0ms", "10ms"));  // ten packets
  for (int i = 0; i < 30; ++i) lab.send(0, 0, 1, 1500);
  lab.wan->run_until({kMs * 100});
  EXPECT_EQ(lab.arrivals.size(), 10u);
  const auto links = lab.wan->links();
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].name, "uplink 0");
  EXPECT_EQ(links[0].rate_bps, 12'000'000u);
  EXPECT_EQ(links[0].offered(), 30u);
  EXPECT_EQ(links[0].passed(), 10u);
  EXPECT_EQ(links[0].counters.queue_full, 20u);
  EXPECT_EQ(links[0].random_loss(), 0u);
  EXPECT_EQ(links[0].counters.queue_bytes_max, 15'000u);
}

TEST(Wan, CountsRandomLossesApartFromFullQueues) {
  NetworkArguments arguments = network("100Mb", "10ms", "10ms");
  arguments.loss = "10%";
  Lab lab(arguments);
  for (int i = 0; i < 20'000; ++i) lab.send(i * kMs, 0, 1, 1000);
  lab.wan->run_until({kMs * 30'000});
  const auto links = lab.wan->links();
  EXPECT_EQ(links[0].counters.queue_full, 0u);
  EXPECT_NEAR(static_cast<double>(links[0].random_loss()), 2'000, 4 * 42);  // 4 sigma
  EXPECT_EQ(lab.arrivals.size() + links[0].random_loss(), 20'000u);
  EXPECT_EQ(lab.wan->under_way(), 0u);
}

TEST(Wan, LosesTheSamePacketsAgainWithTheSameSeed) {
  NetworkArguments arguments = network("100Mb", "10ms", "10ms");
  arguments.gilbert = "1%,20%";
  const auto run = [&](std::uint64_t seed) {
    WanOptions options;
    options.seed = seed;
    Lab lab(arguments, options);
    for (int i = 0; i < 5'000; ++i) lab.send(i * kMs, 0, 1, 100 + static_cast<std::size_t>(i % 7));
    lab.wan->run_until({kMs * 9'000});
    std::vector<std::int64_t> times;
    for (const Lab::Arrival& arrival : lab.arrivals) times.push_back(arrival.ns);
    return times;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

TEST(Wan, JitterKeepsTheOrderUnlessToldOtherwise) {
  NetworkArguments arguments = network("1Gb", "20ms", "10ms");
  arguments.jitter = "5ms";
  for (const bool reorder : {false, true}) {
    arguments.reorder = reorder;
    Lab lab(arguments);
    for (std::size_t i = 0; i < 500; ++i)
      lab.send(static_cast<std::int64_t>(i) * 100'000, 0, 1, 100 + i);
    lab.wan->run_until({kMs * 1'000});
    ASSERT_EQ(lab.arrivals.size(), 500u);
    const bool in_order = std::ranges::is_sorted(lab.arrivals, {}, &Lab::Arrival::bytes);
    EXPECT_EQ(in_order, !reorder);
  }
}

TEST(Wan, MarksWhatCanBeMarked) {
  NetworkArguments arguments = network("12Mb", "0ms", "20ms");
  arguments.ecn = "5ms";
  Lab lab(arguments);
  for (int i = 0; i < 10; ++i) lab.send(0, 0, 1, 1500, 2);
  lab.wan->run_until({kMs * 100});
  const auto marked = std::ranges::count_if(lab.arrivals, &Lab::Arrival::marked);
  EXPECT_EQ(lab.arrivals.size(), 10u);
  EXPECT_EQ(marked, 5);
  EXPECT_EQ(lab.wan->links()[0].counters.marked, 5u);
}

TEST(Wan, DropsWhatIsTooLongForThePathFromItsTimeOn) {
  WanOptions options;
  options.path_mtus = {{.bytes = 1300, .from_ns = 5 * kMs, .rank = 2}};
  Lab lab(network("100Mb", "0ms", "10ms"), options);
  lab.send(0, 0, 2, 1400);
  lab.send(6 * kMs, 0, 2, 1400);  // dropped
  lab.send(6 * kMs, 2, 0, 1400);  // dropped
  lab.send(6 * kMs, 0, 2, 1300);
  lab.send(6 * kMs, 0, 1, 1400);
  lab.wan->run_until({kMs * 100});
  EXPECT_EQ(lab.arrivals.size(), 3u);
  EXPECT_EQ(lab.wan->counters().too_long, 2u);
}

TEST(Wan, TellsTheSenderOfAPacketThatIsTooLongIfAsked) {
  WanOptions options;
  options.path_mtus = {{.bytes = 1300}};
  options.tell_path_mtu = true;
  Lab lab(network("100Mb", "0ms", "10ms"), options);
  lab.send(kMs, 1, 2, 1400);
  ASSERT_EQ(lab.arrivals.size(), 1u);
  EXPECT_EQ(lab.arrivals[0].rank, 1u);
  EXPECT_EQ(lab.arrivals[0].bytes, 56u);
}

TEST(Wan, TurnsAwayWhatNoRankCanGet) {
  Lab lab({});
  lab.wan->take({0}, 0, ip_packet(kFirst, kFirst + 4, 100));  // no such rank
  lab.wan->take({0}, 0, ip_packet(kFirst, kFirst, 100));      // itself
  lab.wan->take({0}, 0, ip_packet(kFirst, 0xe0000001, 100));  // multicast
  lab.wan->take({0}, 0, ip_packet(kFirst, kFirst - 1, 100));
  lab.wan->take({0}, 0, std::vector<std::byte>(100));  // no IPv4
  lab.wan->take({0}, 0, {});
  lab.wan->run_until({kMs});
  EXPECT_EQ(lab.wan->counters().not_carried, 6u);
  EXPECT_TRUE(lab.arrivals.empty());
}

TEST(Wan, SharesALineBetweenTheRanksOfASite) {
  NetworkArguments arguments = network("12Mb", "40ms", "1000ms");
  arguments.downlink = "";
  arguments.sites = 2;
  Lab lab(arguments);
  lab.send(0, 0, 2, 1500);
  lab.send(0, 1, 3, 1500);  // behind the first packet
  lab.send(0, 0, 1, 1500);  // within the site
  lab.wan->run_until({kMs * 100});
  ASSERT_EQ(lab.arrivals.size(), 3u);
  EXPECT_EQ(lab.arrivals[0].rank, 1u);
  EXPECT_EQ(lab.arrivals[0].ns, 0);
  EXPECT_EQ(lab.arrivals[1].ns, 22 * kMs);  // 1 ms on the line up, and 1 on the line down
  EXPECT_EQ(lab.arrivals[2].ns, 23 * kMs);
}

TEST(Wan, AllocatesNothingOnceAsManyPacketsWereUnderWay) {
  NetworkArguments arguments = network("100Mb", "20ms", "50ms");
  arguments.loss = "1%";
  Lab lab(arguments);
  lab.recording = false;
  const auto packet = ip_packet(kFirst, kFirst + 1, 1500);
  const auto run = [&](std::int64_t from_ms) {
    for (std::int64_t i = 0; i < 5'000; ++i) {
      const Instant now{from_ms * kMs + i * 130'000};
      lab.wan->run_until(now);
      lab.wan->take(now, 0, packet);
    }
  };
  run(0);
  const std::size_t before = sim::allocations_so_far();
  run(5'000);
  EXPECT_EQ(sim::allocations_so_far(), before);
}

}  // namespace
}  // namespace leeway::lab
