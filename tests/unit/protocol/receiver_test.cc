#include "protocol/receiver.h"

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

class ReceiverTest : public EndpointParts {
 protected:
  Round& receive(std::uint32_t packets) {
    Round& round = open(client_, plan_of(FlowKind::reduce));
    EXPECT_EQ(round.receive(FlowKind::reduce, 1).packets, packets);
    return round;
  }
  wire::DataHeader header(std::uint32_t index) {
    wire::DataHeader header{.flow_packets = 8, .opened_below = 1};
    header.index.value = header.position.value = index;
    header.tag_digest = wire::digest(plan_of(FlowKind::reduce).tag, false);
    return header;
  }
  void arrive(const wire::DataHeader& header) {
    const std::array<std::byte, wire::kDataHeaderBytes + FakeClient::kPayloadBytes> datagram{};
    receiver_.on_data(kNow, 1, header, datagram);
  }
  FakeClient client_{0, 8};
};

TEST_F(ReceiverTest, TakesEachPacketOnce) {
  ReceiveFlow& flow = receive(8).receive(FlowKind::reduce, 1);
  arrive(header(3));
  arrive(header(3));
  EXPECT_EQ(client_.accepted, std::vector<std::uint32_t>{3});
  EXPECT_EQ(flow.arrived_count, 1u);
  EXPECT_EQ(state_.counters.duplicate, 1u);
}

TEST_F(ReceiverTest, TheLastPacketFinishesTheFlow) {
  Round& round = receive(8);
  for (std::uint32_t i = 0; i < 8; ++i) arrive(header(i));
  EXPECT_TRUE(round.receive(FlowKind::reduce, 1).finished);
  EXPECT_EQ(round.phase(FlowKind::reduce).receives_open, 2u);
  EXPECT_TRUE(link(1).report_due) << "the sender keeps its memory until then";
}

TEST_F(ReceiverTest, RefusesWhatContradictsThePlan) {
  receive(8);
  wire::DataHeader other = header(0);
  other.flow_packets = 9;
  arrive(other);
  other = header(0);
  other.codec = Codec::bf16;
  arrive(other);
  EXPECT_EQ(state_.counters.refused_plan, 2u);
  EXPECT_TRUE(client_.accepted.empty());
  EXPECT_TRUE(link(1).report_due);
}

TEST_F(ReceiverTest, AnotherOperationIsDisputedUntilThePeerMeansThisOne) {  // WIRE 2.5
  Round& round = receive(8);
  wire::DataHeader other = header(0);
  ++other.tag_digest;
  arrive(other);
  EXPECT_EQ(round.disputed_by, 1);
  EXPECT_NE(round.inquire_at, Instant::infinite_future());
  arrive(header(0));
  EXPECT_EQ(round.disputed_by, kNoRank);
}

TEST_F(ReceiverTest, NumbersTooFarAheadAreNotBelieved) {  // WIRE 2.6
  receive(8);
  wire::DataHeader forged = header(0);
  forged.opened_below = 1 + limits::kRoundsAheadMax + 1;
  arrive(forged);
  EXPECT_EQ(state_.counters.refused_progress, 1u);
  EXPECT_TRUE(client_.accepted.empty());
}

TEST_F(ReceiverTest, KeepsEarlyPacketsUntilTheOperationOpens) {
  const std::array<std::byte, FakeClient::kPayloadBytes> payload{};
  wire::DataHeader early = header(2);
  std::array<std::byte, wire::kDataHeaderBytes + payload.size()> datagram{};
  wire::encode_data({wire::PacketType::data, 1, 1, 0, 1}, early, 0, datagram);
  receiver_.on_data(kNow, 1, early, datagram);
  EXPECT_EQ(state_.counters.early_kept, 1u);
  receiver_.replay_early(kNow, receive(8));
  EXPECT_EQ(client_.accepted, std::vector<std::uint32_t>{2});
}

TEST_F(ReceiverTest, AfterTheEndItAsksForTheRest) {
  Round& round = receive(8);
  ReceiveFlow& flow = round.receive(FlowKind::reduce, 1);
  arrive(header(3));
  receiver_.on_end(kNow, 1, {.flow_packets = 8, .tag_digest = header(0).tag_digest});
  receiver_.wake(kNow, round, FlowKind::reduce, 1);
  ASSERT_TRUE(flow.request_due);
  EXPECT_EQ(flow.requested_pass, 1u);
  EXPECT_EQ(control(), std::vector{wire::PacketType::repair});
}

TEST_F(ReceiverTest, AnEndOfWhatIsOverIsAnswered) {
  Round& round = receive(8);
  settling_.finish(kNow, round, Status());
  opening_.reap_ended(kNow);
  receiver_.on_end(kNow, 1, {.flow_packets = 8});
  EXPECT_TRUE(link(1).report_due);
  EXPECT_EQ(link(1).report_copies, 1);
  receiver_.on_end(kNow, 2, {.round = 1, .flow_packets = 8});
  EXPECT_FALSE(link(2).report_due) << "it is not open yet: the sender repeats the END";
}

}  // namespace
}  // namespace leeway::protocol
