// Tests repair requests before the first pass is over (WIRE 5.9).
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "support/datagram_view.h"
#include "support/float_all_reduce.h"

namespace leeway::protocol {
namespace {

using testing::data_header_of;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;
using wire::FlowKind;

// These elements make 284 packets, or five chunks, in each of two shards.
constexpr std::size_t kEarlyCount = 200'000;

// Two ranks with a small window, so that a first pass takes many round trips.
struct LongPass {
  explicit LongPass(bool paced = true) : group(options(paced)) {}
  static GroupOptions options(bool paced) {
    GroupOptions options{.size = 2, .window_bytes = 16 * 1472};
    options.paced = paced;
    return options;
  }
  ::testing::AssertionResult run() { return FloatAllReduce::run(group, kEarlyCount); }
  // Drops rank 0's packets `lost` of the reduce half in the first pass. Records which packets
  // leave.
  void lose(const std::set<std::uint32_t>& lost) {
    group.filter = [this, lost](Rank from, Rank, ByteSpan datagram) {
      const auto header = data_header_of(datagram);
      if (from != 0 || !header || header->kind != FlowKind::reduce) return true;
      sent.push_back(*header);
      return header->attempt > 0 || !lost.contains(header->index.value);
    };
  }
  // Returns the index in `sent` of the first repair of this packet, or the size of `sent`.
  std::size_t answer(std::uint32_t index) const {
    const auto is_it = [&](const wire::DataHeader& header) {
      return header.attempt > 0 && header.index.value == index;
    };
    return static_cast<std::size_t>(std::find_if(sent.begin(), sent.end(), is_it) - sent.begin());
  }
  std::size_t last_of_first_pass() const {
    std::size_t last = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (sent[i].attempt == 0) last = i;
    }
    return last;
  }
  const EndpointCounters& counters(Rank rank) { return group.engine(rank).endpoint().counters(); }

  EngineGroup group;
  std::vector<wire::DataHeader> sent;
};

TEST(EndpointEarlyRepair, WhatAChunkLostIsSentAgainWithinTheFirstPass) {
  LongPass pass;
  pass.lose({});
  EXPECT_TRUE(pass.run());
  std::set<std::uint32_t> lost;  // some of the packets that leave early
  for (const std::size_t place : {6, 40, 90}) lost.insert(pass.sent[place].index.value);
  EXPECT_EQ(pass.counters(1).requests_sent, 0u);
  LongPass losing;
  losing.lose(lost);
  EXPECT_TRUE(losing.run());
  for (const std::uint32_t index : lost)
    EXPECT_LT(losing.answer(index), losing.last_of_first_pass()) << index;
  EXPECT_EQ(losing.counters(0).repairs_sent, lost.size()) << "once each";
  EXPECT_LE(losing.counters(1).requests_sent, 3u);
  EXPECT_EQ(losing.counters(0).data_sent, pass.counters(0).data_sent + lost.size());
}

// A repair must not wait until a chunk of 64 is over. At most these packets leave before it: a step
// of 16 packets, 16 that overtake the lost one, and two windows of 16 in flight.
TEST(EndpointEarlyRepair, APacketIsSentAgainSoon) {
  LongPass pass;
  pass.lose({});
  EXPECT_TRUE(pass.run());
  for (const std::size_t place : {6, 40, 90, 130}) {
    const std::uint32_t index = pass.sent[place].index.value;
    LongPass losing;
    losing.lose({index});
    EXPECT_TRUE(losing.run());
    EXPECT_LE(losing.answer(index), place + 16 + 16 + 2 * 16) << place;
  }
}

// The repair of a packet lost so late would come only when the pass is over. Parity, or one request
// for all missing packets, is as good then.
TEST(EndpointEarlyRepair, NothingIsAskedForShortlyBeforeTheEnd) {
  LongPass pass;
  pass.lose({});
  EXPECT_TRUE(pass.run());
  const std::uint32_t late = pass.sent[270].index.value;
  LongPass losing;
  losing.lose({late});
  EXPECT_TRUE(losing.run());
  EXPECT_GT(losing.answer(late), losing.last_of_first_pass());
  EXPECT_EQ(losing.counters(1).requests_sent, 1u);
}

TEST(EndpointEarlyRepair, OnlyWhereThePaceIsHeld) {
  LongPass pass(/*paced=*/false);
  pass.lose({20, 21, 22});
  EXPECT_TRUE(pass.run());
  EXPECT_GT(pass.answer(20), pass.last_of_first_pass());
}

// Early requests and repairs may be lost, too, so the receiver asks again after the pass.
TEST(EndpointEarlyRepair, WhatIsLostTwiceComesAfterThePass) {
  LongPass pass;
  std::size_t answers = 0;
  pass.group.filter = [&](Rank from, Rank, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    if (from != 0 || !header || header->kind != FlowKind::reduce) return true;
    if (header->attempt == 0) return header->index.value % 12 != 0;
    return ++answers > 12;
  };
  EXPECT_TRUE(pass.run());
  EXPECT_GT(answers, 12u);
}

// A member of the job asks for all packets of the spread half early, also for those of chunks that
// are not reduced yet. Only packets that have already left may be sent again.
TEST(EndpointEarlyRepair, WhatHasNotLeftYetIsNotSentAgain) {
  LongPass pass;
  bool asked = false;
  std::set<std::uint32_t> left;
  std::size_t again = 0;
  pass.group.filter = [&](Rank from, Rank to, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    if (from != 0 || !header || header->kind != FlowKind::spread) return true;
    if (header->attempt > 0) {
      ++again;
      EXPECT_TRUE(left.contains(header->index.value)) << header->index.value;
    } else {
      left.insert(header->index.value);
    }
    if (asked || left.size() < 10) return true;
    asked = true;
    const std::vector<std::uint64_t> all(4, ~std::uint64_t{0});
    const wire::Repair repair{
        .round = header->round, .kind = FlowKind::spread, .attempt = 1, .words = 4};
    std::vector<std::byte> bytes(wire::kRepairFixedBytes + 32);
    wire::encode_repair({wire::PacketType::repair, 77, to, from, 500}, repair, all, bytes);
    pass.group.inject(from, to, bytes);
    return true;
  };
  EXPECT_TRUE(pass.run());
  EXPECT_TRUE(asked);
  EXPECT_GT(again, 0u);
  EXPECT_LT(again, 64u);
}

}  // namespace
}  // namespace leeway::protocol
