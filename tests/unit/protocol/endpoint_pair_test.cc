// Tests datagrams between two endpoints without engines.
#include "endpoint_pair.h"

#include <gtest/gtest.h>

#include <numeric>

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

wire::PacketType packet_type(ByteSpan datagram) {
  wire::Prefix prefix;
  EXPECT_EQ(wire::peek_prefix(datagram, prefix), wire::Refusal::none);
  return prefix.type;
}

std::vector<std::uint32_t> all(std::uint32_t packets) {
  std::vector<std::uint32_t> indices(packets);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

class Pair : public ::testing::Test {
 protected:
  EndpointPair pair_;
};

TEST_F(Pair, APacketIsHandedOutOnceAndTakenOnce) {
  FakeClient a(50, 20), b(20, 50);
  pair_.open(0, pair_.collective(), a);
  pair_.open(1, pair_.collective(), b);
  pair_.pass(50ms);
  EXPECT_EQ(a.sent.size(), 50u);
  EXPECT_EQ(sorted(b.accepted), all(50));
  EXPECT_EQ(sorted(a.accepted), all(20));
  EXPECT_EQ(a.events, "settled 0; done; closed; ");
  EXPECT_EQ(b.events, "settled 0; done; closed; ");
}

TEST_F(Pair, NothingWakesARankWhoseOperationsAreClosed) {
  FakeClient a(50, 20), b(20, 50);
  pair_.open(0, pair_.collective(), a);
  pair_.open(1, pair_.collective(), b);
  pair_.pass(50ms);
  ASSERT_TRUE(a.closed() && b.closed());
  for (const Rank rank : {0, 1})
    EXPECT_EQ(pair_[rank].wake_at(), Instant::infinite_future()) << "its deadline, in 10 s";
}

TEST_F(Pair, ATimeWithoutOperationsIsNoGapBetweenArrivals) {
  for (int i = 0; i < 20; ++i) {
    FakeClient a(8, 0), b(0, 8);
    pair_.open(0, pair_.message(1, true), a);
    pair_.open(1, pair_.message(0, false), b);
    pair_.pass(1s);
    ASSERT_TRUE(a.closed() && b.closed());
  }
  EXPECT_LT(pair_[1].link(0).gap.mean(), 1ms);
}

TEST_F(Pair, FourPacketsAtMostGoOutBeforeTheOtherSideOpens) {  // WIRE 2.4
  FakeClient a(50, 0), b(0, 50);
  pair_.open(0, pair_.collective(), a);
  pair_.pass(20ms);
  EXPECT_EQ(a.sent.size(), std::size_t{limits::kEagerPackets});
  pair_.open(1, pair_.collective(), b);
  pair_.pass(20ms);
  EXPECT_TRUE(a.done());
  EXPECT_EQ(a.sent.size(), 50u) << "what came early was kept";
}

// Rank 1 would drop data beyond its early buffer, and under best effort nobody asks for them again.
TEST_F(Pair, OfManyOperationsNoMoreGoesOutThanTheOtherSideKeeps) {  // WIRE 2.4
  constexpr int kOperations = 12;
  std::vector<FakeClient> senders(kOperations, FakeClient(1, 0));
  std::vector<FakeClient> receivers(kOperations, FakeClient(0, 1));
  for (FakeClient& client : senders)
    pair_.open(0, pair_.collective(Delivery::Kind::best_effort), client);
  pair_.pass(20ms);
  EXPECT_EQ(pair_[1].counters().early_kept, std::uint64_t{limits::kEarlySlotsPerPeer});
  for (FakeClient& client : receivers) {
    pair_.open(1, pair_.collective(Delivery::Kind::best_effort), client);
    pair_.pass(1ms);
    EXPECT_EQ(client.accepted.size(), 1u);
  }
  EXPECT_EQ(pair_[1].counters().early_dropped, 0u);
}

TEST_F(Pair, WhatIsLostIsAskedForAndSentAgainAlone) {
  int data = 0;
  pair_.filter = [&](Rank, ByteSpan datagram) {
    return packet_type(datagram) != wire::PacketType::data || ++data % 10 != 3 || data > 50;
  };
  FakeClient a(50, 0), b(0, 50);
  pair_.open(0, pair_.collective(), a);
  pair_.open(1, pair_.collective(), b);
  pair_.pass(1s);
  EXPECT_EQ(sorted(b.accepted), all(50));
  EXPECT_EQ(a.sent.size(), 55u);
}

TEST_F(Pair, BestEffortSettlesWithWhatCame) {
  int data = 0;
  pair_.filter = [&](Rank, ByteSpan datagram) {
    return packet_type(datagram) != wire::PacketType::data || ++data % 5 != 0;
  };
  FakeClient a(50, 0), b(0, 50);
  pair_.open(0, pair_.collective(Delivery::Kind::best_effort), a);
  pair_.open(1, pair_.collective(Delivery::Kind::best_effort), b);
  pair_.pass(1s);
  EXPECT_TRUE(b.done() && b.status.ok());
  EXPECT_EQ(b.accepted.size(), 40u);
  EXPECT_EQ(a.sent.size(), 50u);
}

TEST_F(Pair, AnExactRoundFailsAtItsDeadlineAndNotLater) {
  FakeClient b(0, 50);
  pair_.open(1, pair_.collective(Delivery::Kind::exact, 30ms), b);
  const Instant start = pair_.now();
  pair_.pass(1s);
  EXPECT_EQ(b.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(b.done_at, start + 30ms);
  EXPECT_EQ(b.events, "done; closed; ");
}

// The last report is lost, so the sender sends ENDs until a report comes.
TEST_F(Pair, AnEndIsRepeatedUntilItIsAnswered) {  // WIRE 4.3
  bool reports_pass = false;
  pair_.filter = [&](Rank from, ByteSpan datagram) {
    return from == 0 || reports_pass || packet_type(datagram) != wire::PacketType::report;
  };
  FakeClient a(3, 0), b(0, 3);
  pair_.open(1, pair_.collective(), b);
  pair_.open(0, pair_.collective(), a);
  pair_.pass(100ms);
  EXPECT_TRUE(b.done());
  EXPECT_FALSE(a.done());
  reports_pass = true;
  pair_.pass(100ms);
  EXPECT_TRUE(a.closed());
}

TEST_F(Pair, MessagesDoNotOccupyThePlacesOfCollectives) {
  std::vector<std::unique_ptr<FakeClient>> receives;
  for (int i = 0; i < 100; ++i) {
    receives.push_back(std::make_unique<FakeClient>(0, 1));
    EXPECT_NE(pair_.open(0, pair_.message(1, false), *receives.back()), nullptr);
  }
  std::vector<std::unique_ptr<FakeClient>> collectives;
  for (int i = 0; i < limits::kOpenCollectivesMax; ++i) {
    collectives.push_back(std::make_unique<FakeClient>(1, 1));
    EXPECT_NE(pair_.open(0, pair_.collective(), *collectives.back()), nullptr);
  }
  FakeClient one_more(1, 1);
  EXPECT_EQ(pair_.open(0, pair_.collective(), one_more), nullptr);
}

TEST_F(Pair, AWakeUpThatIsNotDueDoesNothing) {
  FakeClient a(50, 0);
  pair_.open(0, pair_.collective(), a);
  pair_.pass(10ms);
  const Instant wake = pair_[0].wake_at();
  ASSERT_LT(wake, Instant::infinite_future());
  EXPECT_GT(wake, pair_.now());
  pair_[0].on_wake(pair_.now());
  EXPECT_EQ(pair_[0].wake_at(), wake);
}

TEST_F(Pair, WithNothingOpenNobodyWakes) {
  FakeClient a(5, 5), b(5, 5);
  pair_.open(0, pair_.collective(), a);
  pair_.open(1, pair_.collective(), b);
  pair_.pass(11s);  // beyond the deadline
  EXPECT_TRUE(a.closed() && b.closed());
  EXPECT_EQ(pair_[0].wake_at(), Instant::infinite_future());
}

TEST_F(Pair, APacketAfterALongSilenceEndsTheBackOff) {
  bool silent = true;
  pair_.filter = [&](Rank from, ByteSpan datagram) {
    return from != 0 || !silent || packet_type(datagram) == wire::PacketType::report;
  };
  FakeClient a(40, 0), b(0, 40);
  pair_.open(0, pair_.collective(), a);
  pair_.open(1, pair_.collective(), b);
  pair_.pass(5s);
  EXPECT_TRUE(b.accepted.empty());
  silent = false;
  pair_.pass(200ms);
  EXPECT_TRUE(b.done()) << b.accepted.size();
}

TEST_F(Pair, AnExactOperationThatOpensAfterThePeerLeftWaitsForNoTimeOut) {
  pair_[1].say_goodbye(pair_.now());
  FakeClient a(4, 4);
  pair_.pass(5s);
  const Instant opened = pair_.now();
  pair_.open(0, pair_.collective(), a);
  pair_.pass(pair_[0].link(1).rtt().timeout() / 2);
  ASSERT_TRUE(a.done()) << "a time-out is " << pair_[0].link(1).rtt().timeout().count() << " ns";
  EXPECT_EQ(a.status.code(), StatusCode::kPeerLost) << a.status.c_str();
  EXPECT_LE(a.done_at, opened + pair_[0].link(1).quiet_time(false));
}

// A small window makes reports frequent, and the loss makes a leaving rank send three copies of
// each control datagram.
TEST(PairWithASmallWindow, RanksThatHaveBothLeftDoNotAnswerEachOther) {  // WIRE 6.5
  EndpointPair pair(8);
  int datagrams = 0;
  pair.filter = [&](Rank, ByteSpan) { return ++datagrams % 5 != 0; };
  FakeClient a(50, 50), b(50, 50);
  pair.open(0, pair.collective(), a);
  pair.open(1, pair.collective(), b);
  pair.pass(1s);
  ASSERT_TRUE(a.closed() && b.closed());
  ASSERT_EQ(pair[0].link(1).copies(), 3);
  for (const Rank rank : {0, 1}) pair[rank].leave(pair.now());
  pair.pass(1s);
  ASSERT_TRUE(pair[0].left() && pair[1].left());
  datagrams = 0;
  pair.pass(1s);
  EXPECT_EQ(datagrams, 0);
}

}  // namespace
}  // namespace leeway::protocol
