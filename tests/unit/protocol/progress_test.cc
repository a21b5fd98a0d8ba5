#include "protocol/progress.h"

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

using ProgressTest = EndpointParts;

TEST_F(ProgressTest, APeerMayBeAheadButNotFar) {  // WIRE 2.6
  EXPECT_TRUE(progress_.may_have_opened(1, limits::kRoundsAheadMax));
  EXPECT_FALSE(progress_.may_have_opened(1, limits::kRoundsAheadMax + 1));
  opens(1, 5);
  EXPECT_TRUE(progress_.may_have_opened(1, 5 + limits::kRoundsAheadMax));
  EXPECT_FALSE(progress_.may_have_opened(2, 5 + limits::kRoundsAheadMax)) << "another peer";
}

TEST_F(ProgressTest, TheLastGateThatOpensIsNoted) {
  FakeClient client(100, 0);
  Round& round = open(client, plan_of(FlowKind::reduce));
  opening_.announce(kNow, round);
  EXPECT_EQ(round.gates_closed, 3u);
  for (const Rank peer : {1, 2}) progress_.on_collectives(kNow + 1ms, peer, 1, 0);
  progress_.on_collectives(kNow + 1ms, 2, 1, 0);
  EXPECT_EQ(round.gates_closed, 1u);
  progress_.on_collectives(kNow + 2ms, 3, 1, 0);
  EXPECT_EQ(round.gates_closed, 0u);
  EXPECT_EQ(round.gate_open_at, kNow + 2ms);
}

TEST_F(ProgressTest, WhatAPeerHasSettledIsSentNoMore) {
  FakeClient client(100, 0);
  Round& round = open(client, plan_of(FlowKind::reduce));
  progress_.on_collectives(kNow, 1, 1, 1);
  EXPECT_TRUE(round.send(FlowKind::reduce, 1).settled);
  EXPECT_FALSE(round.send(FlowKind::reduce, 2).settled);
}

TEST_F(ProgressTest, ProgressBeyondOursIsNotBelieved) {
  progress_.on_collectives(kNow, 1, 1, 1);
  EXPECT_EQ(link(1).peer_settled_below, 0u);
  FakeClient client(100, 0);
  EXPECT_FALSE(open(client, plan_of(FlowKind::reduce)).send(FlowKind::reduce, 1).settled);
}

TEST_F(ProgressTest, AnEndIsRepeatedSoonOnceThePeerHasOpened) {
  FakeClient client(1, 0);
  Round& round = open(client, plan_of(FlowKind::reduce));
  opening_.announce(kNow, round);
  data();
  SendFlow& flow = round.send(FlowKind::reduce, 1);
  flow.end_tries = 9;
  flow.end_at = kNow + 5s;
  opens(1, 1);
  EXPECT_EQ(flow.end_tries, 0u);
  EXPECT_EQ(flow.end_at, kNow + link(1).rtt().timeout());
}

}  // namespace
}  // namespace leeway::protocol
