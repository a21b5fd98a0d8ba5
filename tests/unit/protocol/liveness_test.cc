#include "protocol/liveness.h"

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

class LivenessTest : public EndpointParts {
 protected:
  Round& collective(Delivery::Kind delivery = Delivery::Kind::exact) {
    return open(client_, plan_of(FlowKind::reduce, delivery));
  }
  FakeClient client_{8, 8};
};

TEST_F(LivenessTest, ASilentPeerIsProbedAndThenDead) {
  collective();
  liveness_.watch(kNow, 1);
  Instant now = kNow;
  bool dead = false;
  for (; !dead && now < kNow + 10s; now = now + 10ms) dead = liveness_.wake(now, 1);
  EXPECT_TRUE(dead);
  EXPECT_TRUE(link(1).probe_due);
  EXPECT_GE(now - kNow, state_.config.peer_timeout);
}

TEST_F(LivenessTest, APeerThatSpokeIsWatchedWhileSomethingIsExpected) {
  const auto spoke = [&](Rank peer) {
    liveness_.watch(kNow, peer);
    link(peer).path().on_life(kNow + 1ms);
    EXPECT_FALSE(liveness_.wake(kNow + 600ms, peer));
    return link(peer).watch.on();
  };
  EXPECT_FALSE(spoke(1));
  tags_.watch(5);
  EXPECT_TRUE(spoke(2));
}

TEST_F(LivenessTest, ADeathFailsExactOperationsAndNamesTheFirst) {
  collective();
  EXPECT_EQ(liveness_.first_dead(), kNoRank);
  liveness_.bury(kNow, 2);
  liveness_.bury(kNow, 3);
  EXPECT_EQ(client_.status.code(), StatusCode::kPeerLost);
  EXPECT_EQ(liveness_.first_dead(), 2);
  EXPECT_FALSE(liveness_.all_gone());
  liveness_.bury(kNow, 1);
  EXPECT_TRUE(liveness_.all_gone());
}

TEST_F(LivenessTest, LossyOperationsGoOnWithoutTheDead) {
  Round& round = collective(Delivery::Kind::best_effort);
  liveness_.bury(kNow, 2);
  EXPECT_FALSE(round.ended);
  EXPECT_TRUE(round.receive(FlowKind::reduce, 2).finished);
  EXPECT_FALSE(round.send(FlowKind::reduce, 2).open());
  EXPECT_TRUE(round.receive(FlowKind::reduce, 1).open());
}

TEST_F(LivenessTest, ARankThatMostGaveUpIsOut) {  // WIRE 6.7
  EXPECT_FALSE(liveness_.on_given_up(kNow, 1));
  EXPECT_TRUE(link(1).gone);
  EXPECT_FALSE(liveness_.on_given_up(kNow, 1)) << "its word counts once";
  EXPECT_TRUE(liveness_.given_up().ok());
  EXPECT_TRUE(liveness_.on_given_up(kNow, 2));
  EXPECT_FALSE(liveness_.given_up().ok());
}

TEST_F(LivenessTest, AFloodOfProbesIsAnsweredByAFewReports) {  // WIRE 6.10
  for (int i = 0; i < 100; ++i) {
    liveness_.on_probe(kNow, 1);
    control();
  }
  EXPECT_EQ(state_.counters.reports_sent, 1u);
  EXPECT_NE(link(1).answer_at, Instant::infinite_future()) << "one follows the last probe";
}

TEST_F(LivenessTest, ALaterRoundExpectsNothingOfThoseThatLeft) {
  liveness_.on_goodbye(kNow, 1);
  Round& lossy = collective(Delivery::Kind::best_effort);
  liveness_.start_without(kNow, lossy);
  EXPECT_TRUE(lossy.receive(FlowKind::reduce, 1).finished);
  FakeClient exact(8, 8);
  liveness_.bury(kNow, 2);
  liveness_.start_without(kNow, open(exact, plan_of(FlowKind::reduce)));
  EXPECT_EQ(exact.status.code(), StatusCode::kPeerLost);
}

}  // namespace
}  // namespace leeway::protocol
