// Tests when a sender may send and when a receiver is content: ready gate, credit, early data,
// settling.
#include <gtest/gtest.h>

#include "base/limits.h"
#include "support/datagram_view.h"
#include "support/engine_group.h"
#include "support/float_all_reduce.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using testing::data_header_of;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;
using testing::is_data;
using testing::type_of;

const EndpointCounters& counters(EngineGroup& group, Rank rank) {
  return group.engine(rank).endpoint().counters();
}
void wait(EngineGroup& group, Duration time) {
  group.run_until([] { return false; }, time);
}

TEST(EndpointGate, OnlyEagerPacketsGoBeforeThePeerHasOpened) {
  EngineGroup group(GroupOptions{.size = 2});
  FloatAllReduce call(2, 100000);
  call.submit(group, 0);
  wait(group, 200ms);
  EXPECT_EQ(counters(group, 0).data_sent, limits::kEagerPackets);
  EXPECT_EQ(counters(group, 1).early_kept, limits::kEagerPackets);
  EXPECT_FALSE(call.requests()[0]->done);
  call.submit(group, 1);
  EXPECT_TRUE(call.finish(group));
  EXPECT_EQ(counters(group, 0).repairs_sent, 0u) << "what came early was used";
}

TEST(EndpointGate, TimeUntilThePeersHadOpenedIsReported) {
  EngineGroup group(GroupOptions{.size = 2});
  FloatAllReduce call(2, 100000);
  call.submit(group, 0);
  wait(group, 50ms);
  call.submit(group, 1);
  ASSERT_TRUE(call.finish(group));
  EXPECT_GE(call.report(0).times.gate, 50ms);
  EXPECT_LT(call.report(0).times.gate, 52ms);
  EXPECT_LT(call.report(1).times.gate, 1ms);
  EXPECT_GE(call.report(0).times.total, call.report(0).times.reduce);
}

TEST(EndpointGate, SmallOperationsPassItWithoutAnExtraRoundTrip) {
  EngineGroup group(GroupOptions{.size = 4});
  FloatAllReduce call(4, 100);
  call.submit_all(group);
  ASSERT_TRUE(call.finish(group));
  EXPECT_LE(call.report(0).times.total, 2 * GroupOptions().delay) << "one way there, one way back";
}

TEST(EndpointGate, EarlyDataOfMoreOperationsThanTheOtherSideKeepsWaits) {  // WIRE 2.4
  EngineGroup group(GroupOptions{.size = 2});
  std::vector<std::unique_ptr<FloatAllReduce>> calls;
  for (int i = 0; i < 6; ++i) {
    calls.push_back(std::make_unique<FloatAllReduce>(2, 20000));
    calls.back()->submit(group, 0);
  }
  wait(group, 5ms);
  EXPECT_EQ(counters(group, 1).early_kept, limits::kEarlySlotsPerPeer);
  EXPECT_EQ(counters(group, 1).early_dropped, 0u);
  for (auto& call : calls) call->submit(group, 1);
  for (auto& call : calls) EXPECT_TRUE(call->finish(group));
}

// Some packets are lost, so that the checksums of repairs are checked, too (WIRE 1.2).
TEST(EndpointChecksum, CoversPayloadsUnlessTheTransportKeepsThemIntact) {
  for (const bool sum_payloads : {true, false}) {
    GroupOptions options{.size = 3, .sum_payloads = sum_payloads};
    options.faults.loss = 0.1;
    EngineGroup group(options);
    int others = 0;
    group.filter = [&](Rank, Rank, ByteSpan datagram) {
      wire::Prefix prefix;
      EXPECT_EQ(wire::decode_prefix(datagram, nullptr, prefix), wire::Refusal::none);
      others += prefix.payload_summed != (sum_payloads || prefix.type != wire::PacketType::data);
      return true;
    };
    FloatAllReduce call(3, 60000);
    call.submit_all(group);
    EXPECT_TRUE(call.finish(group));
    EXPECT_EQ(others, 0);
    EXPECT_GT(counters(group, 0).repairs_sent, 0u);
  }
}

// Rank 0 reaches rank 1 through memory, so its data to rank 1 need no checksum of payloads. It
// reaches rank 2 by the network (WIRE 1.2).
TEST(EndpointChecksum, CoversPayloadsToThoseWhoseLinkMayDamageThem) {
  GroupOptions options{.size = 3};
  options.faults.loss = 0.1;
  EngineGroup group(options);
  group.engine(0).endpoint().keep_intact({0, 1, 0});
  int wrong = 0;
  int unsummed = 0;
  group.filter = [&](Rank from, Rank to, ByteSpan datagram) {
    wire::Prefix prefix;
    EXPECT_EQ(wire::decode_prefix(datagram, nullptr, prefix), wire::Refusal::none);
    const bool near = from == 0 && to == 1 && prefix.type == wire::PacketType::data;
    wrong += prefix.payload_summed == near;
    unsummed += near;
    return true;
  };
  FloatAllReduce call(3, 60000);
  call.submit_all(group);
  EXPECT_TRUE(call.finish(group));
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(unsummed, 0);
}

TEST(EndpointWindow, InFlightNeverExceedsIt) {
  for (const double loss : {0.0, 0.2}) {
    GroupOptions options{.size = 3, .window_bytes = 8 * 1472};
    options.faults.loss = loss;
    EngineGroup group(options);
    std::uint32_t most = 0;
    group.filter = [&](Rank from, Rank to, ByteSpan datagram) {
      // in_flight() counts a whole train, in which an END or a repair request may follow the data.
      if (is_data(datagram))
        most = std::max(most, group.engine(from).endpoint().link(to).path().in_flight());
      return true;
    };
    FloatAllReduce call(3, 60000);
    call.submit_all(group);
    EXPECT_TRUE(call.finish(group));
    EXPECT_LE(most, 8u + 1u);
    EXPECT_GE(most, 8u) << "the window is used";
  }
}

// A report is a datagram that the peer may have to report in turn. With tiny windows, reports once
// answered each other until the deadline, and left no credit for data.
TEST(EndpointWindow, ReportsOfTinyWindowsDoNotAnswerEachOther) {
  for (const std::size_t datagrams : {2, 3, 4, 7}) {
    EngineGroup group(GroupOptions{.size = 2, .window_bytes = datagrams * 1472});
    FloatAllReduce call(2, 50'000);
    call.submit_all(group);
    EXPECT_TRUE(call.finish(group, 1s)) << "a window of " << datagrams;
    EXPECT_LE(counters(group, 0).reports_sent, 2 * counters(group, 0).data_sent)
        << "a window of " << datagrams;
  }
}

TEST(EndpointWindow, AProbeReopensItWhenEveryReportWasLost) {
  EngineGroup group(GroupOptions{.size = 2, .window_bytes = 8 * 1472});
  const Instant silent_until = group.now() + 30ms;
  group.filter = [&](Rank, Rank, ByteSpan datagram) {
    return type_of(datagram) != wire::PacketType::report || group.now() >= silent_until;
  };
  FloatAllReduce call(2, 60000);
  call.submit_all(group);
  EXPECT_TRUE(call.finish(group, 1s));
  EXPECT_GT(counters(group, 0).probes_sent + counters(group, 1).probes_sent, 0u);
}

TEST(EndpointSettle, CompleteDataSettleAtOnce) {
  EngineGroup group(GroupOptions{.size = 4});
  FloatAllReduce call(4, 20000, best_effort(10s));
  call.submit_all(group);
  ASSERT_TRUE(call.finish(group));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_LE(call.report(rank).times.total, 6 * GroupOptions().delay)
        << "no quiet time, no time-out";
    EXPECT_FALSE(call.report(rank).deadline_cut);
  }
}

TEST(EndpointSettle, IncompleteDataSettleSoonAfterTheEnd) {
  EngineGroup group(GroupOptions{.size = 4});
  group.filter = [](Rank from, Rank to, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    return !(header && from == 1 && to == 0 && header->kind == wire::FlowKind::reduce &&
             header->index.value == 3);
  };
  FloatAllReduce call(4, 20000, best_effort(10s));
  call.submit_all(group);
  ASSERT_TRUE(group.run(call.requests()));
  const CollectiveReport& report = call.report(0);
  EXPECT_EQ(report.peers[0].arrived + 1, report.peers[0].expected);
  EXPECT_FALSE(report.deadline_cut);
  EXPECT_LT(report.times.reduce, 2ms);
  EXPECT_EQ(report.contributors.min, 3u);
}

TEST(EndpointSettle, WithoutAnEndTheDeadlineCuts) {
  EngineGroup group(GroupOptions{.size = 2});
  group.filter = [](Rank from, Rank, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    const bool last = header && header->position.value + 1 == header->flow_packets;
    return from != 1 || !(last || type_of(datagram) == wire::PacketType::end);
  };
  FloatAllReduce call(2, 20000, best_effort(100ms));
  call.submit_all(group);
  ASSERT_TRUE(group.run(call.requests()));
  EXPECT_TRUE(call.report(0).deadline_cut);
  EXPECT_GE(call.report(0).times.reduce, 50ms) << "half of the deadline belongs to the reduce half";
  EXPECT_LE(call.report(0).times.reduce, 50ms + Duration(limits::kTickNs));
  EXPECT_LE(call.report(0).times.total, 100ms + Duration(limits::kTickNs));
}

TEST(EndpointSettle, ALostEndIsSentAgain) {
  EngineGroup group(GroupOptions{.size = 2});
  int ends = 0;
  group.filter = [&](Rank from, Rank, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    const bool last =
        header && header->attempt == 0 && header->position.value + 1 == header->flow_packets;
    if (from == 1 && type_of(datagram) == wire::PacketType::end) return ++ends > 4;
    return from != 1 || !last;
  };
  FloatAllReduce call(2, 20000, best_effort(10s));
  call.submit_all(group);
  ASSERT_TRUE(group.run(call.requests(), 1s)) << "long before the deadline";
  EXPECT_GT(ends, 4);
}

TEST(EndpointLate, WhatComesAfterSettlingIsCountedAndNotUsed) {
  EngineGroup group(GroupOptions{.size = 3});
  std::vector<std::byte> held;
  group.filter = [&](Rank from, Rank to, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    if (!header || from != 1 || to != 0 || header->kind != wire::FlowKind::reduce ||
        header->index.value != 2)
      return true;
    held = testing::copy_of(datagram);
    return false;
  };
  // Rank 2 calls late, so the operation is still open when the packet that was held arrives.
  FloatAllReduce call(3, 20000, bounded(0.5, 10s));
  call.submit(group, 0);
  call.submit(group, 1);
  wait(group, 20ms);
  ASSERT_FALSE(held.empty());
  ASSERT_FALSE(call.requests()[0]->done);
  group.inject(0, 1, held);
  EXPECT_EQ(counters(group, 0).late, 1u);
  call.submit(group, 2);
  ASSERT_TRUE(group.run(call.requests()));
  EXPECT_EQ(call.report(0).peers[0].late, 1u);
  EXPECT_LT(call.report(0).peers[0].arrived, call.report(0).peers[0].expected);
  EXPECT_EQ(call.report(0).contributors.min, 2u);
}

}  // namespace
}  // namespace leeway::protocol
