#include "protocol/control_writer.h"

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using wire::PacketType;

using ControlWriterTest = EndpointParts;

TEST_F(ControlWriterTest, WritesWhatIsDueOnce) {
  EXPECT_TRUE(control().empty());
  state_.queue_report(1);
  state_.queue_probe(1);
  state_.queue_report(2);
  EXPECT_EQ(control(), (std::vector{PacketType::report, PacketType::report, PacketType::probe}));
  EXPECT_TRUE(control().empty());
  EXPECT_EQ(state_.counters.reports_sent, 2u);
}

TEST_F(ControlWriterTest, RequestsGoBeforeEndsAndReports) {
  FakeClient client(8, 8);
  Round& round = open(client, plan_of(FlowKind::reduce));
  round.send(FlowKind::reduce, 1).end_due = true;
  round.receive(FlowKind::reduce, 1).ask_for_all();
  state_.queue_report(1);
  EXPECT_EQ(control(), (std::vector{PacketType::repair, PacketType::end, PacketType::report}));
}

TEST_F(ControlWriterTest, ARequestForNothingIsNotWritten) {
  FakeClient client(0, 8);
  ReceiveFlow& flow = open(client, plan_of(FlowKind::reduce)).receive(FlowKind::reduce, 1);
  for (std::uint32_t i = 0; i < 8; ++i) flow.arrived.set(i);
  flow.ask_for_all();
  state_.outbox.queue_control(1);
  EXPECT_TRUE(control().empty());
}

TEST_F(ControlWriterTest, ADeadPeerIsToldThatAndNothingElse) {  // WIRE 6.7
  link(1).gone = link(1).dead = true;
  state_.queue_report(1);
  EXPECT_TRUE(control().empty());
  link(1).given_up_due = true;
  state_.queue_probe(1);
  EXPECT_EQ(control(), std::vector{PacketType::given_up});
}

TEST_F(ControlWriterTest, AGoodbyeStandsForEverything) {  // WIRE 6.4
  state_.departure.part(kNow, kRanks);
  state_.departure.owe(kNow, 1, link(1).rtt(), Departure::Awaited::yes);
  state_.queue_report(1);
  state_.queue_probe(1);
  EXPECT_EQ(control(), std::vector{PacketType::goodbye});
}

TEST_F(ControlWriterTest, OneReportGoesAheadOfTheGoodbyeIfMessagesDidNotMatch) {  // WIRE 6.4
  FakeClient client(8, 0);
  Round& sent = open(client, message(true));
  state_.rounds.messages(1)->give_up_unmatched(sent);
  state_.departure.part(kNow, kRanks);
  for (int i = 0; i < 2; ++i) {
    state_.departure.owe(kNow, 1, link(1).rtt(), Departure::Awaited::yes);
    state_.queue_report(1);
    const auto written = control();
    EXPECT_EQ(written, i == 0 ? (std::vector{PacketType::report, PacketType::goodbye})
                              : std::vector{PacketType::goodbye});
  }
}

TEST_F(ControlWriterTest, EachEndWaitsLongerForItsAnswer) {
  FakeClient client(8, 0);
  Round& round = open(client, plan_of(FlowKind::reduce));
  SendFlow& flow = round.send(FlowKind::reduce, 1);
  buffer_->start(1);
  control_.write_end(kNow, 1, round, FlowKind::reduce, *buffer_);
  const Duration first = flow.end_at - kNow;
  control_.write_end(kNow, 1, round, FlowKind::reduce, *buffer_);
  EXPECT_GT(flow.end_at - kNow, first);
  EXPECT_FALSE(flow.end_due);
}

}  // namespace
}  // namespace leeway::protocol
