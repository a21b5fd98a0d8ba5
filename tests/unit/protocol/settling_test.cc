#include "protocol/settling.h"

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

using SettlingTest = EndpointParts;

TEST_F(SettlingTest, ARoundEndsWithItsLastFlow) {
  FakeClient client(1, 1);
  Round& round = open(client, plan_of(FlowKind::reduce));
  for (Rank peer = 1; peer < kRanks; ++peer) {
    settling_.finish_receive(kNow, round, FlowKind::reduce, peer);
    settling_.settle_send(round, FlowKind::reduce, peer);
    EXPECT_TRUE(client.events.empty());
    settling_.advance(kNow, round);
  }
  EXPECT_EQ(client.events, "settled 0; done; ");
  EXPECT_TRUE(round.ended);
}

TEST_F(SettlingTest, AFailureIsToldToAllPeersThatAreThere) {
  FakeClient client(1, 1);
  Round& round = open(client, plan_of(FlowKind::reduce));
  link(2).gone = true;
  settling_.finish(kNow, round, Status::error(StatusCode::kPeerLost, "lost"), {2});
  EXPECT_EQ(client.status.code(), StatusCode::kPeerLost);
  EXPECT_EQ(state_.counters.rounds_failed, 1u);
  EXPECT_TRUE(link(1).report_due && link(3).report_due);
  EXPECT_FALSE(link(2).report_due);
  wire::Report report;
  settling_.failures().list(1, state_.rounds.collectives_opened(), report.open.size(), 1472,
                            report);
  ASSERT_EQ(report.open_count, 1u);
  EXPECT_EQ(report.open[0].about, 2);
}

TEST_F(SettlingTest, AMessageThatIsDoomedKeepsItsReasonIfItIsCancelled) {
  FakeClient client(8, 0);
  Round& round = open(client, message(true));
  settling_.doom(kNow, round, Status::error(StatusCode::kMismatch, "it does not match"), {1});
  settling_.cancel(kNow, Status::error(StatusCode::kCancelled, "closed"), Cancelled::all);
  EXPECT_EQ(client.status.code(), StatusCode::kMismatch);
  ASSERT_EQ(state_.rounds.messages(1)->given_up().size(), 1u);
  EXPECT_TRUE(state_.rounds.messages(1)->given_up()[0].unmatched.has_value());
}

TEST_F(SettlingTest, AMessageIsDoomedBeforeItFails) {
  FakeClient client(1, 0);
  Round& round = open(client, message(true));
  settling_.doom(kNow, round, Status::error(StatusCode::kMismatch, "too long"), {1});
  EXPECT_FALSE(round.ended);
  EXPECT_TRUE(link(1).report_due) << "the peer is to hear it";
  EXPECT_EQ(round.fail_at, kNow + Duration(limits::kTickNs));
  settling_.advance(kNow, round);
  EXPECT_TRUE(client.events.empty());
}

TEST_F(SettlingTest, AnOwnerSpreadsWhatItHasSettled) {
  FakeClient client(1, 1);
  RoundPlan plan = plan_of(FlowKind::reduce);
  plan.phase(FlowKind::spread) = plan.phase(FlowKind::reduce);
  Round& round = open(client, plan);
  round.receive(FlowKind::spread, 1).arrived_count = 1;
  settling_.finish_receive(kNow, round, FlowKind::spread, 1);
  EXPECT_TRUE(round.send(FlowKind::reduce, 1).settled) << "without an acknowledgement";
  settling_.finish_receive(kNow, round, FlowKind::spread, 2);
  EXPECT_FALSE(round.send(FlowKind::reduce, 2).settled) << "its shard is not complete";
}

TEST_F(SettlingTest, ASenderThatAsksForTheUseOfItsPartKeepsTheFlowOpen) {  // WIRE 4.3
  FakeClient client(1, 0);
  RoundPlan plan = plan_of(FlowKind::reduce);
  plan.confirm_use = true;
  Round& round = open(client, plan);
  settling_.settle_send(round, FlowKind::reduce, 1);
  EXPECT_TRUE(round.send(FlowKind::reduce, 1).open());
  EXPECT_TRUE(round.send(FlowKind::reduce, 1).end_due);
  round.send(FlowKind::reduce, 1).informed = true;
  settling_.settle_send(round, FlowKind::reduce, 1);
  EXPECT_FALSE(round.send(FlowKind::reduce, 1).open());
}

TEST_F(SettlingTest, ALossyRoundEndsWellByItsDeadlineAndAnExactOneFails) {
  FakeClient lossy(1, 1), exact(1, 1);
  Round& first = open(lossy, plan_of(FlowKind::reduce, Delivery::Kind::best_effort));
  Round& second = open(exact, plan_of(FlowKind::reduce));
  settling_.on_deadline(kNow + 10s, first);
  settling_.on_deadline(kNow + 10s, second);
  EXPECT_TRUE(lossy.done() && lossy.status.ok());
  EXPECT_TRUE(first.phase(FlowKind::reduce).deadline_cut);
  EXPECT_EQ(exact.status.code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace leeway::protocol
