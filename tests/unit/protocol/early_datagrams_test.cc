#include "protocol/early_datagrams.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace leeway::protocol {
namespace {

using Fate = EarlyDatagrams::Fate;
using wire::FlowKind;

class Early : public ::testing::Test {
 protected:
  using Bytes = std::vector<std::byte>;
  using Taken = std::vector<std::pair<Rank, Bytes>>;
  static Bytes bytes_of(int value, std::size_t length = 10) {
    return Bytes(length, static_cast<std::byte>(value));
  }

  Fate judge(Rank from, FlowKind kind, std::uint32_t round, std::uint32_t opened_below,
             std::uint32_t index = 0, const Bytes& datagram = bytes_of(0, 100)) {
    wire::DataHeader header;
    header.round = round;
    header.kind = kind;
    header.index.value = index;
    return early_.judge(from, header, opened_below, datagram);
  }
  Fate keep(Rank from, std::uint32_t round, std::uint32_t index, const Bytes& datagram) {
    return judge(from, FlowKind::spread, round, 0, index, datagram);
  }
  Taken take(std::uint32_t number) {
    Taken taken;
    early_.take_collective(number, [&](Rank from, ByteSpan bytes) {
      taken.emplace_back(from, Bytes(bytes.begin(), bytes.end()));
    });
    return taken;
  }
  int taken(bool message, Rank from, std::uint32_t number) {
    int count = 0;
    const auto use = [&](Rank, ByteSpan) { ++count; };
    message ? early_.take_message(from, 0, number, use) : early_.take_collective(number, use);
    return count;
  }

  EarlyDatagrams early_{3, 100};
};

TEST_F(Early, OperationsThatComeAreKept) {  // WIRE 2.4
  EXPECT_EQ(judge(1, FlowKind::reduce, 9, 10), Fate::closed);
  EXPECT_EQ(judge(1, FlowKind::reduce, 10, 10), Fate::kept);
  EXPECT_EQ(judge(1, FlowKind::reduce, 1'000'000, 10), Fate::kept);
  EXPECT_EQ(judge(1, FlowKind::reduce, 10 + limits::kRoundsAheadMax, 10), Fate::future);
}

TEST_F(Early, EveryDatagramOfTheOperationIsHandedOverOnce) {
  keep(0, 7, 0, bytes_of(1));
  keep(2, 7, 0, bytes_of(2, 100));
  keep(0, 8, 0, bytes_of(3));
  keep(0, 7, 1, bytes_of(4, 1));
  EXPECT_EQ(take(7), (Taken{{0, bytes_of(1)}, {0, bytes_of(4, 1)}, {2, bytes_of(2, 100)}}));
  EXPECT_TRUE(take(7).empty());
  EXPECT_EQ(take(8), (Taken{{0, bytes_of(3)}}));
}

TEST_F(Early, WhatDoesNotFitIsDropped) {
  EXPECT_EQ(keep(0, 1, 0, bytes_of(1, 101)), Fate::dropped);
  EXPECT_EQ(keep(0, 1, 0, {}), Fate::dropped);
  EXPECT_EQ(keep(3, 1, 0, bytes_of(1)), Fate::dropped) << "a rank beyond the group";
  EXPECT_TRUE(take(1).empty());
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
  EXPECT_EQ(judge(1, FlowKind::spread, 1, 0), Fate::kept) << "slots are free again";
}

TEST_F(Early, CopiesTakeOnePlace) {
  for (int i = 0; i < 9; ++i) EXPECT_EQ(judge(1, FlowKind::reduce, 0, 0, 3), Fate::kept);
  EXPECT_EQ(judge(1, FlowKind::spread, 0, 0, 3), Fate::kept);
  EXPECT_EQ(judge(1, FlowKind::reduce, 1, 0, 3), Fate::kept);
  EXPECT_EQ(taken(false, kNoRank, 0), 2);
}

TEST_F(Early, TheLastCopyTakesThePlaceOfThoseBefore) {
  for (int i = 0; i < 5; ++i) keep(0, 1, 7, bytes_of(i, 10 + i));
  EXPECT_EQ(keep(0, 2, 7, bytes_of(9)), Fate::kept) << "of another operation";
  EXPECT_EQ(take(1), (Taken{{0, bytes_of(4, 14)}}));
  EXPECT_EQ(take(2), (Taken{{0, bytes_of(9)}}));
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
