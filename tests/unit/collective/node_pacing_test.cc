// Tests how a congestion controller delays the datagrams of a process, and which reports of peers
// it gets.
#include "collective/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/datagram_view.h"
#include "unit/collective/node_processes.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::Gt;

// Two processes in one all_reduce of 400 KB.
struct Paced {
  explicit Paced(const congestion::Settings& congestion) : Paced(congestion, congestion) {}
  Paced(const congestion::Settings& first, const congestion::Settings& second,
        std::size_t window = kWindow)
      : processes({first, second}) {
    processes.window = window;
    members = processes.join(7, {0, 1});
    begin();
  }
  void begin() {
    data.assign(2, std::vector<float>(100'000, 1.0f));
    requests.clear();
    for (Rank rank = 0; rank < 2; ++rank)
      requests.push_back(&processes.all_reduce(rank, *members[rank], data[rank]));
  }
  bool run(Duration limit = 10s) {
    return processes.run_until([&] { return requests[0]->done && requests[1]->done; }, limit);
  }
  bool right() const {
    return std::all_of(data.begin(), data.end(), [](const std::vector<float>& result) {
      return std::all_of(result.begin(), result.end(), [](float value) { return value == 2.0f; });
    });
  }

  Processes processes;
  std::vector<Member*> members;
  std::vector<std::vector<float>> data;
  std::vector<Request*> requests;
};

TEST(NodePacing, AFixedRateIsKeptInEveryMillisecond) {
  constexpr std::uint64_t kRate = 50'000'000;
  Paced paced({.control = CongestionControl::fixed, .rate_bits_per_second = kRate});
  std::deque<std::pair<Instant, std::size_t>> last;
  std::size_t bytes = 0;
  std::size_t most = 0;
  paced.processes.observer = [&](Rank from, Rank, ByteSpan datagram) {
    if (from != 0) return;
    const Instant now = paced.processes.now();
    last.emplace_back(now, datagram.size());
    bytes += datagram.size();
    for (; now - last.front().first >= 1ms; last.pop_front()) bytes -= last.front().second;
    most = std::max(most, bytes);
  };
  const Instant start = paced.processes.now();
  ASSERT_TRUE(paced.run());
  EXPECT_TRUE(paced.right());
  // In each half of the call each rank sends half of the 400 KB. With headers, 416 KB leave each
  // rank in 67 ms.
  EXPECT_GT(paced.processes.now() - start, 66ms);
  EXPECT_LT(paced.processes.now() - start, 95ms);
  // Beyond the rate, the limit allows a train of two datagrams, as much again that a late wake-up
  // may catch up, and 500 bytes of control datagrams, which do not wait.
  EXPECT_LE(most, kRate / 8000 + 2 * 2 * 1472 + 500);
}

// Rank 0 is slow. While it still sends contributions, results overwrite the memory of its first
// ones. Parity must be computed from what was sent. A chunk's result comes only after its
// contributions, so the test loses only packets of the last chunks.
TEST(NodePacing, ParityIsOfWhatWasSentAlsoWhereResultsHaveTakenItsPlace) {
  Paced paced({.control = CongestionControl::fixed, .rate_bits_per_second = 200'000'000},
              {.control = CongestionControl::fixed, .rate_bits_per_second = 8'000'000'000}, 256);
  const auto recovered = [&] { return paced.members[1]->engine().endpoint().counters().recovered; };
  int count = 0;
  bool any = true;  // may be lost, so that the links count as lossy
  paced.processes.loses = [&](ByteSpan datagram) {
    const auto header = testing::data_header_of(datagram);
    if (!header) return false;
    if (any) return ++count % 13 == 0;
    wire::Prefix prefix;
    (void)wire::peek_prefix(datagram, prefix);
    return prefix.source == 0 && header->kind == wire::FlowKind::reduce && header->attempt == 0 &&
           !header->is_parity() && header->position.value + 20 > header->flow_packets &&
           header->position.value % 7 == 0;
  };
  for (int call = 0; call < 5; ++call) {
    const std::uint64_t before = recovered();
    any = call < 4;
    ASSERT_TRUE(paced.run());
    ASSERT_TRUE(paced.right()) << "call " << call;
    if (!any) {
      EXPECT_GT(recovered(), before) << "call " << call;
    }
    paced.processes.pass(10ms);
    paced.begin();
  }
}

// A paced rank must send contributions first. Otherwise it would send results while all others wait
// for its contributions.
TEST(NodePacing, ContributionsGoBeforeResults) {
  Paced paced({.control = CongestionControl::fixed, .rate_bits_per_second = 50'000'000});
  std::array<int, 2> results{};
  std::array<int, 2> overtaken{};
  paced.processes.observer = [&](Rank from, Rank, ByteSpan datagram) {
    wire::Prefix prefix;
    wire::DataHeader header;
    ByteSpan payload;
    ASSERT_EQ(wire::peek_prefix(datagram, prefix), wire::Refusal::none);
    if (prefix.type != wire::PacketType::data) return;
    ASSERT_EQ(wire::decode_data(datagram, header, payload), wire::Refusal::none);
    if (header.kind == wire::FlowKind::spread) ++results[from];
    if (header.kind == wire::FlowKind::reduce && results[from] > 0) ++overtaken[from];
  };
  ASSERT_TRUE(paced.run());
  EXPECT_THAT(results, Each(Gt(0)));
  EXPECT_THAT(overtaken, Each(0));
}

TEST(NodePacing, TrainsAreAsLongAsAQuantum) {
  Paced paced({.control = CongestionControl::fixed, .rate_bits_per_second = 50'000'000});
  std::size_t in_a_row = 0;
  Instant before{0};
  std::size_t longest = 0;
  paced.processes.observer = [&](Rank from, Rank, ByteSpan) {
    if (from != 0) return;
    in_a_row = paced.processes.now() == before ? in_a_row + 1 : 1;
    before = paced.processes.now();
    longest = std::max(longest, in_a_row);
  };
  ASSERT_TRUE(paced.run());
  EXPECT_LE(longest, 6u);
}

TEST(NodePacing, EndsWhereDatagramsAndReportsAreLost) {
  for (const auto control : {CongestionControl::fixed, CongestionControl::scavenger,
                             CongestionControl::wan, CongestionControl::fabric}) {
    Paced paced({.control = control, .rate_bits_per_second = 50'000'000});
    int number = 0;
    paced.processes.loses = [&](ByteSpan) { return ++number % 7 == 0; };
    ASSERT_TRUE(paced.run()) << to_string(control);
    EXPECT_TRUE(paced.right()) << to_string(control);
  }
}

TEST(NodePacing, GoesOnAfterAllReportsOfASecondWereLost) {
  Paced paced({.control = CongestionControl::wan});
  const Instant from = paced.processes.now() + 2ms;
  paced.processes.loses = [&](ByteSpan) {
    return paced.processes.now() >= from && paced.processes.now() < from + 1s;
  };
  ASSERT_TRUE(paced.run());
  EXPECT_TRUE(paced.right());
}

// A group with far ranks joins a process that was not paced before.
TEST(NodePacing, BeginsWhereMembersHaveSentAlready) {
  constexpr std::uint64_t kRate = 50'000'000;
  Paced paced({});
  ASSERT_TRUE(paced.run());
  const congestion::Settings fixed{.control = CongestionControl::fixed,
                                   .rate_bits_per_second = kRate};
  for (Rank slot = 0; slot < 2; ++slot) {
    Node& node = paced.processes[slot];
    EXPECT_FALSE(node.pace(paced.processes.now(), {}));
    EXPECT_EQ(node.uplink(), nullptr);
    EXPECT_TRUE(node.pace(paced.processes.now(), fixed));
    EXPECT_FALSE(node.pace(paced.processes.now(), {.control = CongestionControl::wan}));
  }
  paced.begin();
  const Instant start = paced.processes.now();
  ASSERT_TRUE(paced.run());
  EXPECT_TRUE(paced.right());
  EXPECT_GT(paced.processes.now() - start, 66ms);
  EXPECT_LT(paced.processes.now() - start, 95ms);
}

// Two lanes of each of two processes. Nodes 2 and 3 share the uplinks of nodes 0 and 1.
struct TwoLanes {
  explicit TwoLanes(const congestion::Settings& congestion)
      : processes({congestion, congestion, {}, {}}) {
    for (Rank lane0 = 0; lane0 < 2; ++lane0) {
      Node& further = processes[lane0 + 2];
      EXPECT_TRUE(further.pace_with(processes.now(), processes[lane0]));
      EXPECT_FALSE(further.pace_with(processes.now(), processes[lane0]));
    }
    for (const auto& lane : {std::vector<Rank>{0, 1}, std::vector<Rank>{2, 3}}) {
      const auto members = processes.join(7, lane);
      for (std::size_t rank = 0; rank < 2; ++rank) {
        data.push_back(std::make_unique<std::vector<float>>(100'000, 1.0f));
        requests.push_back(&processes.all_reduce(lane[rank], *members[rank], *data.back()));
      }
    }
  }
  bool run() {
    return processes.run_until([&] {
      return std::all_of(requests.begin(), requests.end(), [](auto* one) { return one->done; });
    });
  }

  Processes processes;
  std::vector<std::unique_ptr<std::vector<float>>> data;
  std::vector<Request*> requests;
};

TEST(NodePacing, LanesOfAProcessHaveOneRateTogetherAndTakeTurns) {
  constexpr std::uint64_t kRate = 50'000'000;
  TwoLanes lanes({.control = CongestionControl::fixed, .rate_bits_per_second = kRate});
  std::deque<std::pair<Instant, std::size_t>> last;
  std::size_t bytes = 0;
  std::size_t most = 0;
  std::array<std::size_t, 2> by_lane{};
  std::size_t apart = 0;
  const Instant start = lanes.processes.now();
  lanes.processes.observer = [&](Rank from, Rank, ByteSpan datagram) {
    if (from % 2 != 0) return;
    const Instant now = lanes.processes.now();
    last.emplace_back(now, datagram.size());
    bytes += datagram.size();
    for (; now - last.front().first >= 1ms; last.pop_front()) bytes -= last.front().second;
    most = std::max(most, bytes);
    by_lane[from / 2] += datagram.size();
    if (now - start < 100ms)
      apart = std::max(apart, std::max(by_lane[0], by_lane[1]) - std::min(by_lane[0], by_lane[1]));
  };
  ASSERT_TRUE(lanes.run());
  // Two lanes move 800 KB, twice the data of the test of one lane, so they take twice its 67 ms.
  EXPECT_GT(lanes.processes.now() - start, 132ms);
  EXPECT_LT(lanes.processes.now() - start, 170ms);
  EXPECT_LE(most, kRate / 8000 + 2 * 2 * 1472 + 2 * 500);
  EXPECT_LT(apart, 8u * 1472);
}

// A full window holds up both lanes. A report to either lane lets both go on.
TEST(NodePacing, AReportToOneLaneWakesTheOther) {
  TwoLanes lanes({.control = CongestionControl::wan});
  int woken = 0;
  for (Rank slot = 0; slot < 4; ++slot) lanes.processes[slot].wake_by([&] { ++woken; });
  ASSERT_TRUE(lanes.run());
  EXPECT_GT(woken, 0);
  for (const auto& one : lanes.data) EXPECT_THAT(*one, Each(2.0f));
  EXPECT_EQ(lanes.processes[0].uplink()->in_flight_bytes(),
            lanes.processes[2].uplink()->in_flight_bytes());
}

// Required by WIRE 3.16.
TEST(NodePacing, TellsThePeerWhatItsHostDropped) {
  Paced paced({.control = CongestionControl::fixed, .rate_bits_per_second = 50'000'000});
  int number = 0;
  std::uint64_t dropped = 0;
  paced.processes.loses = [&](ByteSpan datagram) {
    wire::Prefix prefix;
    const bool lost = wire::peek_prefix(datagram, prefix) == wire::Refusal::none &&
                      prefix.destination == 1 && ++number % 10 == 0;
    dropped += lost;
    return lost;
  };
  wire::Report told;
  paced.processes.observer = [&](Rank from, Rank, ByteSpan datagram) {
    wire::Report report;
    wire::Prefix prefix;
    if (from != 1 || wire::peek_prefix(datagram, prefix) != wire::Refusal::none ||
        prefix.type != wire::PacketType::report)
      return;
    ASSERT_EQ(wire::decode_report(datagram, report), wire::Refusal::none);
    told = report;
  };
  EXPECT_TRUE(paced.processes[1].wants_host_drops(paced.processes.now()));
  ASSERT_TRUE(paced.processes.run_until(
      [&] {
        const Instant now = paced.processes.now();
        if (paced.processes[1].wants_host_drops(now))
          paced.processes[1].on_host_drops(now, dropped, 100'000);
        return paced.requests[0]->done && paced.requests[1]->done;
      },
      10s));
  EXPECT_TRUE(paced.right());
  EXPECT_GT(dropped, 10u);
  EXPECT_LT(told.grant, 100'000u);
  EXPECT_GT(told.host_drops, dropped / 2);
  EXPECT_LE(told.host_drops, dropped);
}

TEST(NodePacing, WithoutAControllerNobodyAsksForHostDrops) {
  Paced paced({});
  EXPECT_FALSE(paced.processes[0].wants_host_drops(Instant::infinite_future() - 1ns));
}

TEST(NodePacing, WithoutAControllerNothingAsksForReports) {
  Paced paced({});
  bool asks = false;
  paced.processes.observer = [&](Rank, Rank, ByteSpan datagram) {
    wire::Prefix prefix;
    ASSERT_EQ(wire::peek_prefix(datagram, prefix), wire::Refusal::none);
    asks |= prefix.asks;
  };
  ASSERT_TRUE(paced.run());
  EXPECT_FALSE(asks);
}

// Three processes. The first one relays between the others, and forwards as much as limit() allows.
struct Relayed {
  explicit Relayed(const congestion::Settings& congestion)
      : processes({congestion, congestion, congestion}) {
    members = processes.join(7, {0, 1, 2});
    data.assign(3, std::vector<float>(100'000, 1.0f));
    for (const Rank rank : {1, 2})
      processes[rank].on_new_path(processes.now(), static_cast<Rank>(3 - rank), 0, 76);
    processes.observer = [this](Rank from, Rank to, ByteSpan datagram) {
      (from + to == 3 ? relayed : straight) += datagram.size();
    };
  }
  void limit(std::uint64_t bytes_per_second) {
    for (const Rank rank : {1, 2})
      processes[rank].on_relay_share(processes.now(), 0, bytes_per_second);
  }
  Duration call() {
    relayed = straight = 0;
    const Instant start = processes.now();
    std::vector<Request*> requests;
    for (const Rank rank : {0, 1, 2})
      requests.push_back(&processes.all_reduce(rank, *members[rank], data[rank]));
    const bool done = processes.run_until([&] {
      return std::all_of(requests.begin(), requests.end(),
                         [](const auto* one) { return one->done; });
    });
    EXPECT_TRUE(done);
    return processes.now() - start;
  }

  Processes processes;
  std::vector<Member*> members;
  std::vector<std::vector<float>> data;
  std::size_t relayed = 0;
  std::size_t straight = 0;
};

class NodeRelayPacing : public ::testing::TestWithParam<CongestionControl> {};

// A relay's limit holds whatever paces the uplink, and without a pace (WIRE 9.10).
TEST_P(NodeRelayPacing, WhatGoesThroughARelayKeepsToItsShare) {
  Relayed group({.control = GetParam(), .rate_bits_per_second = 80'000'000});
  const Duration before = group.call();
  group.limit(1'000'000);
  const Duration limited = group.call();
  // In each half ranks 1 and 2 send each other a third of 400 KB. So each of them sends 267 KB at 1
  // MB/s, and relaying adds 76 bytes a datagram.
  EXPECT_GT(limited, 260ms);
  EXPECT_LT(limited, 450ms);  // trains of a whole window, if nothing paces
  EXPECT_LT(before, limited / 3);
  EXPECT_GT(group.straight, group.relayed);
}

INSTANTIATE_TEST_SUITE_P(Of, NodeRelayPacing,
                         ::testing::Values(CongestionControl::none, CongestionControl::fixed,
                                           CongestionControl::wan));

TEST(NodePacing, APathOfItsOwnIsHeldNoMore) {
  Relayed group({.control = CongestionControl::fixed, .rate_bits_per_second = 80'000'000});
  group.limit(16'000);
  std::vector<Request*> requests;
  for (const Rank rank : {0, 1, 2})
    requests.push_back(&group.processes.all_reduce(rank, *group.members[rank], group.data[rank]));
  const auto done = [&] {
    return std::all_of(requests.begin(), requests.end(), [](const auto* one) { return one->done; });
  };
  EXPECT_FALSE(group.processes.run_until(done, 1s));
  for (const Rank rank : {1, 2})
    group.processes[rank].on_new_path(group.processes.now(), static_cast<Rank>(3 - rank));
  EXPECT_TRUE(group.processes.run_until(done, 1s));
}

TEST(NodePacing, WhoeverLooksSeesThatDataWaitForTheRelay) {
  Relayed group({.control = CongestionControl::fixed, .rate_bits_per_second = 80'000'000});
  group.limit(16'000);
  for (const Rank rank : {0, 1, 2})
    group.processes.all_reduce(rank, *group.members[rank], group.data[rank]);
  group.processes.pass(500ms);
  using Hold = protocol::Sender::Hold;
  EXPECT_EQ(group.members[1]->engine().endpoint().sender().hold(2), Hold::relay);
  EXPECT_NE(group.members[1]->engine().endpoint().sender().hold(0), Hold::relay);
}

}  // namespace
}  // namespace leeway::collective
