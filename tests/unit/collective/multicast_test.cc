// Tests spread halves that are sent once for all receivers. Results must be the same with fewer
// datagrams, and no rank may wait for a rank that does not hear multicast.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "support/engine_group.h"
#include "support/seeds.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr int kRanks = 4;
constexpr std::size_t kMulticastCount = 40'000;  // floats a rank's block; some 350 packets of 512 B

bool is_multicast(ByteSpan datagram) {
  wire::Prefix prefix;
  return wire::peek_prefix(datagram, prefix) == wire::Refusal::none &&
         prefix.destination == kEveryRank;
}

// Sends probes as the runtime does first, so that ranks learn who hears multicast.
void probe_all(EngineGroup& group) {
  for (int turn = 0; turn < 8; ++turn) {
    for (Rank rank = 0; rank < kRanks; ++rank) group.engine(rank).endpoint().probe_all();
    group.run_until([] { return false; }, 1ms);
  }
}

class Multicast : public ::testing::TestWithParam<double> {
 protected:
  void start(bool multicast, double loss = 0) {
    GroupOptions options{.size = kRanks, .datagram_bytes = 512, .multicast = multicast};
    options.faults.loss = loss;
    options.faults.seed = 7;
    group_.emplace(options);
  }

  void probe() { probe_all(*group_); }

  Request& submit(Rank rank, OperationKind kind, Delivery delivery) {
    std::vector<float>& input = inputs_.emplace_back(
        kind == OperationKind::all_gather ? kMulticastCount : kRanks * kMulticastCount);
    for (std::size_t i = 0; i < input.size(); ++i)
      input[i] = static_cast<float>(rank + 1) * static_cast<float>(i % 1000);
    std::vector<float>& output = outputs_[rank] =
        std::vector<float>(kRanks * kMulticastCount, -1.0F);
    OperationSpec spec{
        .kind = kind, .input = std::span(input), .output = std::span(output), .peer = 0};
    if (kind == OperationKind::broadcast) spec.output = std::span(rank == 0 ? input : output);
    if (kind == OperationKind::broadcast) spec.input = std::span(input);
    spec.options.delivery = delivery;
    if (kind == OperationKind::all_reduce) spec.options.op = ReduceOp::avg;
    return group_->submit(rank, spec);
  }
  std::vector<Request*> submit_all(OperationKind kind, Delivery delivery) {
    std::vector<Request*> requests;
    for (Rank rank = 0; rank < kRanks; ++rank) requests.push_back(&submit(rank, kind, delivery));
    return requests;
  }
  void run(OperationKind kind, Delivery delivery = exact()) {
    const auto requests = submit_all(kind, delivery);
    ASSERT_TRUE(group_->run(requests));
    for (const Request* request : requests)
      ASSERT_TRUE(request->status.ok()) << request->status.c_str();
  }

  // Checks the result of an all_gather.
  void expect_gathered(Rank rank) {
    for (std::size_t i = 0; i < kRanks * kMulticastCount; ++i) {
      const float expected = static_cast<float>(i / kMulticastCount + 1) *
                             static_cast<float>(i % kMulticastCount % 1000);
      ASSERT_EQ(outputs_[rank][i], expected) << "rank " << rank << ", element " << i;
    }
  }

  const protocol::EndpointCounters& counters(Rank rank) {
    return group_->engine(rank).endpoint().counters();
  }

  // Multicast no longer reaches this rank.
  void deafen(Rank rank) {
    group_->filter = [rank](Rank, Rank to, ByteSpan datagram) {
      return to != rank || !is_multicast(datagram);
    };
  }

  std::optional<EngineGroup> group_;
  std::deque<std::vector<float>> inputs_;
  std::array<std::vector<float>, kRanks> outputs_;
};

TEST_F(Multicast, AnOwnerSendsEachPacketOnce) {
  start(/*multicast=*/false);
  run(OperationKind::all_gather);
  const std::uint64_t unicast = counters(1).data_sent;
  start(/*multicast=*/true);
  probe();
  run(OperationKind::all_gather);
  for (Rank rank = 0; rank < kRanks; ++rank) {
    expect_gathered(rank);
    EXPECT_EQ((kRanks - 1) * counters(rank).data_sent, unicast);
    EXPECT_EQ(counters(rank).group_sent, counters(rank).data_sent);
    EXPECT_EQ(counters(rank).group_left, 0u);
  }
}

TEST_F(Multicast, WhatIsLostIsRepairedForThoseWhoMissedIt) {
  start(/*multicast=*/true, /*loss=*/0.1);
  probe();
  run(OperationKind::all_gather);
  for (Rank rank = 0; rank < kRanks; ++rank) {
    expect_gathered(rank);
    const protocol::EndpointCounters& sent = counters(rank);
    const double per_receiver = static_cast<double>(sent.repairs_sent) /
                                static_cast<double>((kRanks - 1) * sent.group_sent);
    // Each of 3 receivers loses 10 % of some 350 packets, and 10 % of each round of repairs. That
    // makes 0.1 + 0.01 + 0.001 ... = 0.111 +- 0.011 repairs a packet.
    EXPECT_NEAR(per_receiver, 0.111, 0.04);
    EXPECT_EQ(sent.group_sent + sent.repairs_sent, sent.data_sent);
  }
}

// The network must lose the same packets at the same receivers with and without multicast.
TEST_P(Multicast, LossyReductionsGiveTheSameBitsAndReports) {
  std::array<std::vector<float>, kRanks> results;
  std::array<double, kRanks> losses;
  for (const bool multicast : {false, true}) {
    start(multicast, GetParam());
    if (multicast) probe();
    const auto requests = submit_all(OperationKind::all_reduce, best_effort(1s));
    ASSERT_TRUE(group_->run(requests));
    for (Rank rank = 0; rank < kRanks; ++rank) {
      ASSERT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.c_str();
      if (multicast) {
        EXPECT_EQ(outputs_[rank], results[rank]);
        EXPECT_EQ(requests[rank]->report.loss, losses[rank]);
        EXPECT_GT(counters(rank).group_sent, 0u);
      }
      results[rank] = outputs_[rank];
      losses[rank] = requests[rank]->report.loss;
    }
    EXPECT_EQ(results[0], results[3]);
  }
}
INSTANTIATE_TEST_SUITE_P(Loss, Multicast, ::testing::Values(0.0, 0.05, 0.2));

TEST_F(Multicast, WhoNeverHeardAnyIsSentToAlone) {
  start(/*multicast=*/true);
  deafen(3);
  probe();
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_FALSE(group_->engine(rank).endpoint().link(3).group.hears());
    EXPECT_TRUE(group_->engine(rank).endpoint().link((rank + 1) % 3).group.hears());
  }
  run(OperationKind::all_gather);
  for (Rank rank = 0; rank < kRanks; ++rank) expect_gathered(rank);
  // Rank 0 sends each packet once by multicast, for ranks 1 and 2, and once to rank 3, which hears
  // no multicast. Rank 3 sends each packet once, because all others hear its multicast.
  EXPECT_EQ(counters(0).data_sent, 2 * counters(0).group_sent);
  EXPECT_EQ(counters(3).data_sent, counters(3).group_sent);
  EXPECT_EQ(counters(0).group_left, 0u);
}

TEST_F(Multicast, WithASingleHearerThereIsNone) {
  start(/*multicast=*/true);
  group_->filter = [](Rank, Rank to, ByteSpan datagram) {
    return to <= 1 || !is_multicast(datagram);
  };
  probe();
  run(OperationKind::broadcast);
  EXPECT_EQ(counters(0).group_sent, 0u);
}

TEST_F(Multicast, WhoStopsHearingHoldsTheOthersUpOnceAndIsThenSentToAlone) {
  start(/*multicast=*/true);
  probe();
  deafen(2);
  run(OperationKind::all_gather);
  for (Rank rank = 0; rank < kRanks; ++rank) expect_gathered(rank);
  const std::uint64_t left = counters(0).group_left;
  EXPECT_LE(left, 1u);  // A window may hold the whole pass; then repair is enough.
  group_->filter = nullptr;
  probe();
  EXPECT_TRUE(group_->engine(0).endpoint().link(2).group.hears());
}

TEST_F(Multicast, AFullWindowThatNobodyReportsEndsTheWait) {
  start(/*multicast=*/true);
  probe();
  deafen(2);
  // These calls exceed a window of 1 MiB.
  for (int call = 0; call < 12; ++call) run(OperationKind::all_gather);
  for (Rank rank = 0; rank < kRanks; ++rank) expect_gathered(rank);
  EXPECT_EQ(counters(0).group_left, 1u);
  EXPECT_FALSE(group_->engine(0).endpoint().link(2).group.hears());
  EXPECT_TRUE(group_->engine(0).endpoint().link(1).group.hears());
}

TEST_F(Multicast, TheOthersDoNotWaitForALateRank) {
  start(/*multicast=*/true);
  probe();
  std::vector<Request*> punctual;
  for (Rank rank = 0; rank < 3; ++rank)
    punctual.push_back(&submit(rank, OperationKind::broadcast, exact()));
  const Instant before = group_->now();
  ASSERT_TRUE(group_->run({punctual[1], punctual[2]}, 1s));
  EXPECT_LT(group_->now() - before, 50ms);
  group_->run_until([] { return false; }, 200ms);
  Request& late = submit(3, OperationKind::broadcast, exact());
  ASSERT_TRUE(group_->run({punctual[0], &late}, 1s));
  EXPECT_EQ(counters(0).group_left, 1u);
  EXPECT_EQ(outputs_[3], inputs_.front());
}

TEST_F(Multicast, AReportOfWhatWasNeverSentIsRefused) {
  start(/*multicast=*/true);
  probe();
  wire::Report report;
  report.group_largest = 1'000'000;
  std::vector<std::byte> datagram(limits::kDatagramBytesMax);
  datagram.resize(
      wire::encode_report({wire::PacketType::report, 77, 1, 0, 1000}, report, datagram));
  group_->inject(0, 1, datagram);
  EXPECT_EQ(counters(0).refused_report, 1u);
}

// A rank reports that it has opened a broadcast, and this report may be lost. If the rank then
// hears the end of a pass that was multicast for others, it sends only repair requests from then
// on. Such a request must open the sender's ready gate (WIRE 5.5). Without this rule, three of 300
// seeds waited until their deadline.
TEST(MulticastUnderFaults, NothingWaitsForItsDeadline) {
  for (std::uint64_t seed = 1; seed <= testing::seeds(40, 300); ++seed) {
    GroupOptions options{.size = kRanks, .datagram_bytes = 1024, .multicast = true};
    options.faults = {.loss = 0.15, .burst = 3, .duplicate = 0.05, .corrupt = 0.02, .seed = seed};
    EngineGroup group(options);
    probe_all(group);
    std::array<std::vector<float>, kRanks> data;
    data.fill(std::vector<float>(20'000, 1.0F));
    for (int call = 0; call < 8; ++call) {
      const auto requests = group.submit_all([&](Rank rank) {
        OperationSpec spec{
            .kind = call % 2 == 0 ? OperationKind::broadcast : OperationKind::all_reduce,
            .input = std::span<const float>(data[rank]),
            .output = std::span(data[rank])};
        if (spec.kind == OperationKind::broadcast) spec.peer = 1;
        if (call % 4 == 1) spec.options.delivery = best_effort(20s);
        return spec;
      });
      ASSERT_TRUE(group.run(requests, 5s)) << "seed " << seed << ", call " << call;
    }
  }
}

// Here ranks also stop for a while. A rank may get all packets from what is multicast for others,
// and finish. If its report is lost, the owner does not know that the rank has opened the call.
// Owners once waited for such a rank until the deadline, in 13 of 9,000 seeds (268, 313 and later).
TEST(MulticastUnderFaults, NorForARankThatWasDoneBeforeItWasKnownToBeThere) {
  constexpr std::array<std::size_t, 7> kSizes = {1, 250, 251, 1000, 1500, 4096, 16'384};
  constexpr std::array kKinds = {OperationKind::broadcast, OperationKind::all_gather,
                                 OperationKind::reduce_scatter, OperationKind::all_reduce};
  for (std::uint64_t seed = 251; seed <= testing::seeds(280, 350); ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    const auto up_to = [&](std::uint32_t limit) { return random() % limit; };
    GroupOptions options{.size = kRanks, .datagram_bytes = 1024, .multicast = true};
    options.faults = {
        .loss = 0.1, .burst = up_to(2) == 0 ? 1.0 : 11.0, .reorder = 0.2, .seed = seed};
    EngineGroup group(options);
    if (up_to(4) != 0) probe_all(group);
    const auto pass = [&](std::uint32_t microseconds) {
      group.run_until([] { return false; }, std::chrono::microseconds(up_to(microseconds)));
    };
    std::array<std::vector<float>, kRanks> in, out;
    in.fill(std::vector<float>(kRanks * kSizes.back(), 1.0F));
    out = in;
    for (int call = 0; call < 20; ++call) {
      const std::size_t count = kSizes[up_to(kSizes.size())];
      const OperationKind kind = kKinds[up_to(kKinds.size())];
      const Rank root = static_cast<Rank>(up_to(kRanks));
      const bool broadcast = kind == OperationKind::broadcast;
      const bool gather = kind == OperationKind::all_gather;
      const bool scatter = kind == OperationKind::reduce_scatter;
      std::vector<Request*> requests;
      for (Rank rank = 0; rank < kRanks; ++rank) {
        OperationSpec spec{.kind = kind, .peer = broadcast ? root : kNoRank};
        spec.input = std::span<const float>(in[rank]).first(scatter ? kRanks * count : count);
        spec.output =
            std::span(broadcast ? in[rank] : out[rank]).first(gather ? kRanks * count : count);
        requests.push_back(&group.submit(rank, spec));
        if (up_to(8) == 0) pass(3000);
      }
      for (int stop = 0; stop < 4; ++stop) {
        const Rank rank = static_cast<Rank>(up_to(kRanks));
        group.freeze(rank);
        pass(30'000);
        group.thaw(rank);
        pass(2000);
      }
      ASSERT_TRUE(group.run(requests, 5s)) << "seed " << seed << ", call " << call;
    }
  }
}

}  // namespace
}  // namespace leeway::collective
