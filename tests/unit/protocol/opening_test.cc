#include "protocol/opening.h"

#include <deque>

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

using OpeningTest = EndpointParts;

TEST_F(OpeningTest, CountsTheFlowsThatAreOpen) {
  link(2).gone = true;
  FakeClient client(8, 8);
  const Round& round = open(client, plan_of(FlowKind::reduce));
  const PhaseState& phase = round.phase(FlowKind::reduce);
  EXPECT_EQ(phase.sends_open, 2u) << "a peer that has gone is sent nothing";
  EXPECT_EQ(phase.passes_open, 2u);
  EXPECT_EQ(phase.receives_open, 3u) << "its packets may still be on their way";
  EXPECT_TRUE(phase.receive[2].abandoned);
  EXPECT_EQ(phase.send[0].packets + phase.receive[0].packets, 0u);
}

TEST_F(OpeningTest, MemoryOfARoundIsUsedAgainWithoutItsState) {
  FakeClient client(8, 8);
  open(client, plan_of(FlowKind::reduce)).receive(FlowKind::reduce, 1).arrived.set(3);
  settling_.cancel(kNow, Status(), Cancelled::all);
  opening_.reap_ended(kNow);
  EXPECT_TRUE(client.closed());
  FakeClient next(8, 8);
  const Round& round = open(next, plan_of(FlowKind::reduce));
  EXPECT_FALSE(round.receive(FlowKind::reduce, 1).arrived.test(3));
  EXPECT_EQ(round.number, 1u);
}

TEST_F(OpeningTest, AReportSaysWhatDataCannot) {  // WIRE 3.3
  FakeClient few(8, 1), many(8, 8), none(0, 1);
  const auto reports = [&](FakeClient& client) {
    link(1).report_due = false;
    opening_.announce(kNow, open(client, plan_of(FlowKind::reduce)));
    return link(1).report_due;
  };
  EXPECT_FALSE(reports(few)) << "data tells it";
  EXPECT_TRUE(reports(many)) << "the sender waits at its gate";
  EXPECT_TRUE(reports(none)) << "no data leaves";
}

TEST_F(OpeningTest, SixteenMessagesTalkAndTheOthersWait) {
  std::deque<FakeClient> clients;
  std::vector<Round*> rounds;
  for (int i = 0; i < limits::kTalkingMessagesMax + 1; ++i) {
    rounds.push_back(&open(clients.emplace_back(1, 0), message(true)));
    opening_.announce(kNow, *rounds.back());
  }
  EXPECT_EQ(rounds[0]->gates_closed, 1u);
  EXPECT_EQ(rounds.back()->gates_closed, 0u) << "it has not begun";
  settling_.finish(kNow, *rounds[0], Status());
  opening_.reap_ended(kNow);
  EXPECT_EQ(rounds.back()->gates_closed, 1u);
}

TEST_F(OpeningTest, ABusyPeriodBeginsWithTheFirstRound) {
  FakeClient first(1, 1), second(1, 1);
  open(first, plan_of(FlowKind::reduce));
  second.plan = plan_of(FlowKind::reduce);
  opening_.open(kNow + std::chrono::seconds(1), second.plan, second);
  EXPECT_EQ(opening_.busy_since(), kNow);
}

}  // namespace
}  // namespace leeway::protocol
