#include "protocol/sender.h"

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

class SenderTest : public EndpointParts {
 protected:
  Round& send(std::uint32_t packets) {
    client_ = std::make_unique<FakeClient>(packets, 0);
    Round& round = open(*client_, plan_of(FlowKind::reduce));
    opening_.announce(kNow, round);
    return round;
  }
  // Lets the peer ask for the packets of this word of a bitmap.
  void ask(std::uint16_t attempt, std::uint64_t word) {
    const wire::Repair repair{.kind = FlowKind::reduce, .attempt = attempt, .words = 1};
    sender_.on_repair(kNow, 1, repair, std::as_bytes(std::span(&word, 1)));
  }
  std::unique_ptr<FakeClient> client_;
};

TEST_F(SenderTest, EagerPacketsAloneLeaveBeforeThePeerHasOpened) {  // WIRE 2.4
  Round& round = send(20);
  data();
  EXPECT_EQ(round.send(FlowKind::reduce, 1).sent, limits::kEagerPackets);
  opens(1, 1);
  data();
  EXPECT_EQ(round.send(FlowKind::reduce, 1).sent, 20u);
  EXPECT_EQ(round.send(FlowKind::reduce, 2).sent, limits::kEagerPackets);
}

TEST_F(SenderTest, TheWindowHoldsTheRestBack) {
  Round& round = send(200);
  opens(1, 1);
  data();
  EXPECT_EQ(round.send(FlowKind::reduce, 1).sent, 64u);
  EXPECT_NE(link(1).probe_at, Instant::infinite_future()) << "it asks for a report";
}

TEST_F(SenderTest, DestinationsTakeTurns) {
  send(1);
  std::vector<Rank> to;
  while (sender_.poll(kNow, *buffer_)) to.push_back(buffer_->train().to);
  EXPECT_EQ(to, (std::vector<Rank>{1, 2, 3}));
}

TEST_F(SenderTest, APassThatIsOverWaitsForItsAnswer) {
  Round& round = send(2);
  EXPECT_EQ(round.phase(FlowKind::reduce).passes_open, 3u);
  data();
  EXPECT_EQ(round.phase(FlowKind::reduce).passes_open, 0u);
  SendFlow& flow = round.send(FlowKind::reduce, 1);
  EXPECT_FALSE(flow.end_due) << "a short flow leaves the END to the timer";
  sender_.wake(flow.end_at - 1us, round, FlowKind::reduce, 1);
  EXPECT_FALSE(flow.end_due);
  sender_.wake(flow.end_at, round, FlowKind::reduce, 1);
  EXPECT_TRUE(flow.end_due);
}

TEST_F(SenderTest, AnswersARequestWithThesePackets) {
  Round& round = send(20);
  opens(1, 1);
  data();
  client_->sent.clear();
  ask(1, 0b1010);
  EXPECT_EQ(round.phase(FlowKind::reduce).passes_open, 3u) << "this one and two behind gates";
  data();
  EXPECT_EQ(client_->sent, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(state_.counters.repairs_sent, 2u);
}

TEST_F(SenderTest, ARequestProvesThatThePeerHasOpened) {  // WIRE 5.5
  Round& round = send(20);
  ask(1, 1);
  EXPECT_TRUE(state_.gate_open(round, 1));
}

TEST_F(SenderTest, AsksAboutACollectiveThatWasGivenUpAreAnswered) {
  Round& round = send(20);
  settling_.finish(kNow, round, Status::error(StatusCode::kCancelled, "closed"));
  opening_.reap_ended(kNow);
  ask(1, 1);
  EXPECT_TRUE(link(1).report_due);
}

}  // namespace
}  // namespace leeway::protocol
