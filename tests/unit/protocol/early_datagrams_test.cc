#include "protocol/early_datagrams.h"

#include <gtest/gtest.h>

#include <array>

namespace leeway::protocol {
namespace {

using Fate = EarlyDatagrams::Fate;
using wire::FlowKind;

class Early : public ::testing::Test {
 protected:
  Fate judge(Rank from, FlowKind kind, std::uint32_t round, std::uint32_t opened_below,
             std::uint32_t index = 0) {
    wire::DataHeader header;
    header.round = round;
    header.kind = kind;
    header.index.value = index;
    return early_.judge(from, header, opened_below, datagram_);
  }
  int taken(bool message, Rank from, std::uint32_t number) {
    int count = 0;
    const auto use = [&](Rank, ByteSpan) { ++count; };
    message ? early_.take_message(from, 0, number, use) : early_.take_collective(number, use);
    return count;
  }

  std::array<std::byte, 100> datagram_{};
  EarlyDatagrams early_{3, 100};
};

TEST_F(Early, OperationsThatComeAreKept) {  // WIRE 2.4
  EXPECT_EQ(judge(1, FlowKind::reduce, 9, 10), Fate::closed);
  EXPECT_EQ(judge(1, FlowKind::reduce, 10, 10), Fate::kept);
  EXPECT_EQ(judge(1, FlowKind::reduce, 1'000'000, 10), Fate::kept);
  EXPECT_EQ(judge(1, FlowKind::reduce, 10 + limits::kRoundsAheadMax, 10), Fate::future);
}

TEST_F(Early, WhatIsSkippedGivesItsPlacesBack) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(judge(1, FlowKind::spread, 3, 0, i), Fate::kept);
    EXPECT_EQ(judge(1, FlowKind::spread, 7, 0, i), Fate::kept);
  }
  EXPECT_EQ(judge(1, FlowKind::spread, 8, 0), Fate::dropped);
  early_.skip_collectives_below(7);
  EXPECT_EQ(judge(1, FlowKind::spread, 8, 0), Fate::kept);
  EXPECT_EQ(taken(false, kNoRank, 3), 0);
  EXPECT_EQ(taken(false, kNoRank, 7), 4);
}

TEST_F(Early, ThereAreEightPlacesForAPeer) {
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(judge(1, FlowKind::spread, 0, 0, i), Fate::kept);
  EXPECT_EQ(judge(1, FlowKind::spread, 0, 0, 8), Fate::dropped);
  EXPECT_EQ(judge(2, FlowKind::spread, 0, 0), Fate::kept);
  EXPECT_EQ(taken(false, kNoRank, 0), 9);
}

TEST_F(Early, CopiesTakeOnePlace) {
  for (int i = 0; i < 9; ++i) EXPECT_EQ(judge(1, FlowKind::reduce, 0, 0, 3), Fate::kept);
  EXPECT_EQ(judge(1, FlowKind::spread, 0, 0, 3), Fate::kept);
  EXPECT_EQ(judge(1, FlowKind::reduce, 1, 0, 3), Fate::kept);
  EXPECT_EQ(taken(false, kNoRank, 0), 2);
}

TEST_F(Early, MessagesAndCollectivesOfOneNumberAreTwoThings) {
  judge(1, FlowKind::reduce, 5, 5);
  judge(1, FlowKind::point, 5, 5);
  judge(2, FlowKind::point, 5, 5);
  EXPECT_EQ(taken(true, 1, 5), 1);
  EXPECT_EQ(taken(false, kNoRank, 5), 1);
  EXPECT_EQ(taken(true, 2, 5), 1);
  EXPECT_EQ(taken(true, 2, 5), 0);
}

}  // namespace
}  // namespace leeway::protocol
