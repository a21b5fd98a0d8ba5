// Tests parity in place of repair: what is sent, what is asked for, and what is refused.
#include <gtest/gtest.h>

#include <set>

#include "support/datagram_view.h"
#include "support/float_all_reduce.h"
#include "wire/code_grid.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using testing::data_header_of;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::forge_data;
using testing::GroupOptions;
using testing::type_of;

// These elements make 142 packets, in two codes, for each of two shards.
constexpr std::size_t kParityCount = 100'000;

// Two ranks whose links have lost enough to get parity, and lose nothing from now on.
struct CodedPair {
  explicit CodedPair(bool paced = true) : group(options(paced)) {
    bool lose = true;
    int count = 0;
    group.filter = [&](Rank, Rank, ByteSpan datagram) {
      return !lose || type_of(datagram) != wire::PacketType::data || ++count % 10 != 0;
    };
    for (int call = 0; call < 4; ++call) EXPECT_TRUE(run());
    lose = false;
    group.filter = nullptr;
  }
  static GroupOptions options(bool paced) {
    GroupOptions options{.size = 2};
    options.paced = paced;
    return options;
  }
  ::testing::AssertionResult run() { return FloatAllReduce::run(group, kParityCount); }
  const EndpointCounters& counters(Rank rank) { return group.engine(rank).endpoint().counters(); }

  EngineGroup group;
};

TEST(EndpointParity, MakesGoodWhatIsLostWithoutARequest) {
  CodedPair pair;
  const auto requests = pair.counters(1).requests_sent;
  const auto recovered = pair.counters(1).recovered;
  // These packets are lost in both halves. Packet 141 is shorter than the others.
  const std::set<std::uint32_t> lost{3, 77, 78, 141};
  pair.group.filter = [&](Rank, Rank to, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    return to != 1 || !header || header->attempt > 0 || !lost.contains(header->index.value);
  };
  EXPECT_TRUE(pair.run());
  EXPECT_EQ(pair.counters(1).recovered - recovered, 2 * lost.size());
  EXPECT_EQ(pair.counters(1).requests_sent, requests);
}

TEST(EndpointParity, IsSentOnlyWhereThePaceIsHeld) {
  CodedPair pair(/*paced=*/false);
  EXPECT_TRUE(pair.run());
  EXPECT_EQ(pair.counters(0).parity_sent, 0u);
}

TEST(EndpointParity, NoneIsSentWhereNothingIsLost) {
  EngineGroup group(CodedPair::options(true));
  FloatAllReduce call(2, kParityCount);
  call.submit_all(group);
  EXPECT_TRUE(call.finish(group));
  EXPECT_EQ(group.engine(0).endpoint().counters().parity_sent, 0u);
}

TEST(EndpointParity, OnlyWhatItFallsShortOfIsAskedFor) {
  CodedPair pair;
  const auto repairs = pair.counters(0).repairs_sent;
  const auto recovered = pair.counters(1).recovered;
  std::uint32_t parities = 0;
  std::uint32_t kept = 0;
  pair.group.filter = [&](Rank, Rank to, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    if (to != 1 || !header || header->kind != wire::FlowKind::spread || header->attempt > 0)
      return true;
    // Code 0 loses six packets, and all of its parities but two.
    const std::uint32_t codes = wire::CodeGrid(header->flow_packets).codes();
    if (!header->is_parity())
      return header->index.value % codes != 0 || header->index.value >= 6 * codes;
    if ((header->index.value - header->flow_packets) % codes != 0) return true;
    ++parities;
    return ++kept <= 2;
  };
  EXPECT_TRUE(pair.run());
  EXPECT_GT(parities, 6u);
  EXPECT_EQ(pair.counters(0).repairs_sent - repairs, 4u);
  EXPECT_EQ(pair.counters(1).recovered - recovered, 2u);
}

// A packet that parity has replaced may still arrive, and must change nothing.
TEST(EndpointParity, OvertakenPacketsAndCopiesChangeNothing) {
  std::uint64_t recovered = 0;
  std::uint64_t unused = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    GroupOptions options{.size = 3, .seed = seed};
    options.paced = true;
    options.faults = {
        .loss = 0.08, .duplicate = 0.2, .reorder = 0.4, .corrupt = 0.02, .seed = seed};
    EngineGroup group(options);
    std::uint64_t arrived = 0;
    for (int round = 0; round < 8; ++round) {
      FloatAllReduce call(3, kParityCount);
      call.submit_all(group);
      ASSERT_TRUE(call.finish(group)) << "seed " << seed;
      ASSERT_TRUE(group.settle());
      for (const PeerReport& row : call.report(0).peers) arrived += row.arrived;
    }
    group.run_until([] { return false; }, 10ms);
    const EndpointCounters& c = group.engine(0).endpoint().counters();
    recovered += c.recovered;
    unused += c.parity_unused;
    EXPECT_EQ(c.data_received - c.parity_received + c.recovered,
              arrived + c.duplicate + c.late + c.closed_round + c.early_dropped)
        << "seed " << seed;
    EXPECT_EQ(c.refused_plan, 0u);
  }
  EXPECT_GT(recovered, 0u);
  EXPECT_GT(unused, 0u) << "copies of parity";
}

// The END of the first pass may be lost together with all parity, which follows the last packet.
TEST(EndpointParity, AllOfItMayBeLost) {
  CodedPair pair;
  int ends = 0;
  pair.group.filter = [&](Rank, Rank, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    if (type_of(datagram) == wire::PacketType::end) return ++ends > 6;
    if (!header || header->kind != wire::FlowKind::spread || header->attempt > 0) return true;
    return !header->is_parity() && header->index.value % 10 != 0;
  };
  EXPECT_TRUE(pair.run());
  EXPECT_GT(ends, 6);
}

// A peer with keys sends parity of a wrong length, or for a round without parity.
TEST(EndpointParity, WhatDoesNotFitThePlanIsRefused) {
  for (const bool paced : {true, false}) {
    EngineGroup group(CodedPair::options(paced));
    FloatAllReduce call(2, kParityCount);
    bool forged = false;
    group.filter = [&](Rank from, Rank to, ByteSpan datagram) {
      const auto header = data_header_of(datagram);
      if (forged || to != 1 || !header || header->kind != wire::FlowKind::spread) return true;
      forged = true;
      wire::DataHeader parity = *header;
      parity.attempt = 0;
      parity.goes_on = true;
      parity.index.value = parity.position.value = header->flow_packets + 1;
      group.inject(1, from, forge_data(77, from, to, parity, 99));
      return true;
    };
    call.submit_all(group);
    EXPECT_TRUE(call.finish(group));
    const EndpointCounters& c = group.engine(1).endpoint().counters();
    EXPECT_EQ(c.refused_plan, paced ? 1u : 0u);
    EXPECT_EQ(c.parity_received, 1u);
    EXPECT_EQ(c.parity_unused, paced ? 0u : 1u);
    EXPECT_EQ(c.recovered, 0u);
  }
}

}  // namespace
}  // namespace leeway::protocol
