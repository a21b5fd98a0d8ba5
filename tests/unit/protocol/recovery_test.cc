#include "protocol/recovery.h"

#include <gtest/gtest.h>

#include "no_client.h"

namespace leeway::protocol {
namespace {

constexpr std::uint32_t kPackets = 10;  // one code

class Holder final : public NoClient {
 public:
  bool hold_parity(FlowKind, Rank, PacketIndex index, ByteSpan) override {
    held.push_back(index.value);
    return fits;
  }
  bool recover(FlowKind, Rank, const CodedPackets&) override {
    ++recovered;
    return fits;
  }
  std::vector<std::uint32_t> held;
  int recovered = 0;
  bool fits = true;
};

class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() {
    plan_.phase(FlowKind::reduce).active = true;
    round_.reset(0, plan_, &client_, 2, Instant{0});
    flow().packets = kPackets;
    flow().arrived.resize(kPackets);
    flow().parity = std::make_unique<ParityLedger>();
    flow().parity->reset(kPackets);
  }
  ReceiveFlow& flow() { return round_.receive(FlowKind::reduce, 1); }
  // Lets all packets below `end` arrive.
  void arrive_below(std::uint32_t end) {
    for (std::uint32_t i = 0; i < end; ++i) flow().arrived.set(i);
    flow().arrived_count = end;
  }
  bool parity(std::uint32_t number) {
    wire::DataHeader header{.kind = FlowKind::reduce, .flow_packets = kPackets};
    header.index.value = kPackets + number;
    return recovery_.on_parity(round_, 1, header, {});
  }

  Holder client_;
  RoundPlan plan_;
  Round round_;
  EndpointCounters counters_;
  Recovery recovery_{counters_};
};

TEST_F(RecoveryTest, ComputesPacketsOnceParityFillsTheirPlaces) {
  arrive_below(8);
  EXPECT_TRUE(parity(0));
  EXPECT_EQ(client_.held, std::vector<std::uint32_t>{8});
  EXPECT_EQ(client_.recovered, 0);
  EXPECT_TRUE(parity(1));
  EXPECT_EQ(client_.recovered, 1);
  EXPECT_TRUE(flow().complete());
  EXPECT_EQ(flow().repaired, 2u);
  EXPECT_EQ(counters_.recovered, 2u);
  EXPECT_FALSE(flow().parity->covers_any());
}

TEST_F(RecoveryTest, ParityOfWrongLengthCoversNothing) {
  arrive_below(8);
  client_.fits = false;
  EXPECT_FALSE(parity(0));
  EXPECT_FALSE(flow().parity->covers_any());
}

TEST_F(RecoveryTest, ParityMovesWhereItsPlaceIsTaken) {
  arrive_below(7);
  parity(0);
  ASSERT_TRUE(flow().parity->covers({7}));
  arrive_below(8);
  recovery_.move(round_, FlowKind::reduce, 1, {7}, {});
  EXPECT_FALSE(flow().parity->covers({7}));
  EXPECT_TRUE(flow().parity->covers({8}));
}

TEST_F(RecoveryTest, CopiesAndSpareParityAreCounted) {
  arrive_below(9);
  parity(0);
  ASSERT_TRUE(flow().complete());
  EXPECT_TRUE(parity(0)) << "a copy";
  EXPECT_TRUE(parity(1)) << "nothing is missing";
  EXPECT_EQ(counters_.parity_unused, 2u);
}

}  // namespace
}  // namespace leeway::protocol
