// Tests faults with probability 1, or of listed packets, over a scripted transport and with a hand
// clock.
#include "transport/fault/fault_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "unit/transport/scripted_transport.h"

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr Rank kSelf = 0;

class FaultTransportTest : public testing::Test {
 protected:
  FaultTransport& with(const FaultOptions& options, std::size_t slots = 64) {
    auto scripted = std::make_unique<ScriptedTransport>();
    below_ = scripted.get();
    transport_ = std::make_unique<FaultTransport>(
        std::move(scripted), kSelf, impairment::FaultPlan::create(options).value(),
        [this] { return now_; }, slots);
    return *transport_;
  }

  // Returns the indices of the packets from one receive().
  std::vector<std::uint32_t> receive(std::size_t room = 32) {
    std::vector<Received> out(room);
    const std::size_t filled = transport_->receive(out);
    std::vector<std::uint32_t> indices;
    for (std::size_t i = 0; i < filled; ++i) indices.push_back(index_of(out[i].bytes));
    return indices;
  }

  static std::vector<Bytes> packets(std::uint32_t first, std::uint32_t last) {
    std::vector<Bytes> batch;
    for (std::uint32_t i = first; i <= last; ++i) batch.push_back(data_packet(i, 100));
    return batch;
  }

  Instant now_{1'000'000'000};
  ScriptedTransport* below_ = nullptr;
  std::unique_ptr<FaultTransport> transport_;
};

using FaultTransportReceive = FaultTransportTest;
using FaultTransportWait = FaultTransportTest;

TEST_F(FaultTransportReceive, WithoutFaultsEverythingPasses) {
  with({});
  below_->arrive(packets(0, 3));
  EXPECT_THAT(receive(), ElementsAre(0, 1, 2, 3));
}

TEST_F(FaultTransportReceive, ListedPacketsAreLostAndCounted) {
  with({.list = "1>0/3/0/1,1>0/3/0/2"});
  below_->arrive(packets(0, 3));
  EXPECT_THAT(receive(), ElementsAre(0, 3));
  EXPECT_EQ(transport_->fault_counters().lost_data, 2u);
  EXPECT_EQ(transport_->fault_counters().lost_control, 0u);
}

TEST_F(FaultTransportReceive, LostControlDatagramsAreCountedApart) {
  with({.loss = 1.0});
  below_->arrive({probe_packet(1), probe_packet(2), data_packet(0, 1)});
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(transport_->fault_counters().lost_control, 2u);
  EXPECT_EQ(transport_->fault_counters().lost_data, 1u);
}

TEST_F(FaultTransportReceive, ABatchLostWholeIsFollowedByTheNext) {
  with({.list = "1>0/3/0/0"});
  below_->arrive(packets(0, 0));
  below_->arrive(packets(1, 1));
  EXPECT_THAT(receive(), ElementsAre(1));
}

TEST_F(FaultTransportReceive, AFloodOfLostBatchesDoesNotHoldTheCaller) {
  with({.loss = 1.0});
  for (int i = 0; i < 100; ++i) below_->arrive(packets(0, 0));
  EXPECT_TRUE(receive().empty());
  EXPECT_LE(below_->receives, 4);
}

TEST_F(FaultTransportReceive, WhatDoesNotDecodePassesUntouched) {
  with({.loss = 1.0, .corrupt = 1.0});
  Bytes foreign = data_packet(5, 100);
  foreign.front() ^= std::byte{1};  // another magic number
  below_->arrive({pattern(30), foreign, {}});
  std::vector<Received> out(8);
  ASSERT_EQ(transport_->receive(out), 3u);
  EXPECT_EQ(bytes_of(out[0].bytes), pattern(30));
  EXPECT_EQ(bytes_of(out[1].bytes), foreign);
  EXPECT_EQ(transport_->fault_counters().undecodable, 3u);
}

TEST_F(FaultTransportReceive, CorruptionFlipsExactlyOneBitAndAlwaysTheSame) {
  std::vector<Bytes> seen;
  for (int run = 0; run < 2; ++run) {
    with({.corrupt = 1.0});
    below_->arrive(packets(4, 4));
    std::vector<Received> out(1);
    ASSERT_EQ(transport_->receive(out), 1u);
    seen.push_back(bytes_of(out[0].bytes));
  }
  EXPECT_EQ(seen[0], seen[1]);
  const Bytes original = data_packet(4, 100);
  int flipped = 0;
  for (std::size_t i = 0; i < original.size(); ++i) {
    flipped += std::popcount(std::to_integer<unsigned>(seen[0][i] ^ original[i]));
  }
  EXPECT_EQ(flipped, 1);
  EXPECT_EQ(transport_->fault_counters().corrupted, 1u);
}

// Damage to a payload without a checksum would not be found, so the fault must hit bytes that a
// checksum covers.
TEST_F(FaultTransportReceive, CorruptionIsAlwaysFoundAlsoWherePayloadsAreNotSummed) {
  with({.corrupt = 1.0}, 256);
  std::vector<Bytes> batch;
  for (std::uint32_t i = 0; i < 200; ++i)
    batch.push_back(data_packet(i, 200, 1, 0, 64, 0, /*payload_summed=*/false));
  below_->arrive(batch);
  std::vector<Received> out(batch.size());
  const std::size_t filled = transport_->receive(out);
  EXPECT_EQ(filled, batch.size());
  for (std::size_t i = 0; i < filled; ++i) {
    wire::Prefix prefix;
    EXPECT_NE(wire::decode_prefix(out[i].bytes, nullptr, prefix), wire::Refusal::none) << i;
  }
}

TEST_F(FaultTransportReceive, ADuplicateIsHandedOutOnceMore) {
  with({.duplicate = 1.0});
  below_->arrive(packets(0, 2));
  std::map<std::uint32_t, int> copies;
  for (int i = 0; i < 3; ++i) {
    for (const std::uint32_t index : receive()) ++copies[index];
  }
  EXPECT_THAT(copies, ElementsAre(std::pair(0u, 2), std::pair(1u, 2), std::pair(2u, 2)));
  EXPECT_EQ(transport_->fault_counters().duplicated, 3u);
}

TEST_F(FaultTransportReceive, DuplicatesWaitWhenTheCallersArrayIsFull) {
  with({.duplicate = 1.0});
  below_->arrive(packets(0, 3));
  std::map<std::uint32_t, int> copies;
  for (int i = 0; i < 20; ++i) {
    for (const std::uint32_t index : receive(1)) ++copies[index];
  }
  EXPECT_THAT(copies,
              ElementsAre(std::pair(0u, 2), std::pair(1u, 2), std::pair(2u, 2), std::pair(3u, 2)));
}

TEST_F(FaultTransportReceive, AReorderedPacketIsOvertakenByAsManyAsThePlanSays) {
  impairment::FaultPlan plan = impairment::FaultPlan::create({.reorder = 0.1, .seed = 4}).value();
  with({.reorder = 0.1, .seed = 4});
  below_->arrive(packets(0, 99));
  // Applies the rule in simple form: each packet let out brings all held packets one step nearer.
  std::vector<std::uint32_t> expected;
  std::vector<std::pair<std::uint32_t, int>> held;
  for (std::uint32_t i = 0; i < 100; ++i) {
    impairment::PacketAddress address{
        .source = 1, .destination = 0, .round = 3, .index = {i}, .position = {i}};
    if (const int distance = plan.fate(address).reorder; distance > 0) {
      held.emplace_back(i, distance);
      continue;
    }
    expected.push_back(i);
    for (auto& [index, distance] : held) {
      if (--distance == 0) expected.push_back(index);
    }
    std::erase_if(held, [](const auto& entry) { return entry.second == 0; });
  }
  EXPECT_EQ(receive(256), expected);
  EXPECT_GE(transport_->fault_counters().reordered, 3u);
}

TEST_F(FaultTransportReceive, WhatNothingOvertakesLeavesAfterTheHold) {
  with({.reorder = 1.0});
  below_->arrive(packets(0, 2));
  EXPECT_TRUE(receive().empty());
  now_ += kReorderHold - 1ns;
  EXPECT_TRUE(receive().empty());
  now_ += 1ns;
  EXPECT_THAT(receive(), ElementsAre(0, 1, 2));
  EXPECT_EQ(transport_->fault_counters().reordered, 3u);
}

TEST_F(FaultTransportReceive, DelayedPacketsComeWhenTheirTimeHasCome) {
  with({.delay = 5ms});
  below_->arrive(packets(0, 1));
  EXPECT_TRUE(receive().empty());
  now_ += 2ms;
  below_->arrive(packets(2, 2));
  EXPECT_TRUE(receive().empty());
  now_ += 3ms;
  EXPECT_THAT(receive(), ElementsAre(0, 1));
  now_ += 2ms;
  EXPECT_THAT(receive(), ElementsAre(2));
  EXPECT_EQ(transport_->fault_counters().delayed, 3u);
}

TEST_F(FaultTransportReceive, DelayedPacketsKeepTheirOtherFaults) {
  with({.duplicate = 1.0, .reorder = 1.0, .delay = 5ms});
  below_->arrive(packets(0, 0));
  receive();
  now_ += 5ms;
  EXPECT_TRUE(receive().empty()) << "now it waits to be overtaken";
  now_ += kReorderHold;
  std::vector<std::uint32_t> seen;
  for (int i = 0; i < 3; ++i) {
    for (const std::uint32_t index : receive()) seen.push_back(index);
  }
  EXPECT_THAT(seen, ElementsAre(0, 0));
}

TEST_F(FaultTransportReceive, WithoutAFreeSlotAPacketIsHandedOutAtOnceAndCounted) {
  with({.delay = 5ms}, 2);
  below_->arrive(packets(0, 4));
  EXPECT_THAT(receive(), ElementsAre(2, 3, 4));
  EXPECT_EQ(transport_->fault_counters().not_held, 3u);
  now_ += 5ms;
  EXPECT_THAT(receive(), ElementsAre(0, 1));
  below_->arrive(packets(5, 6));
  EXPECT_TRUE(receive().empty()) << "slots are free again once the caller came back";
  now_ += 5ms;
  EXPECT_THAT(receive(), ElementsAre(5, 6));
}

TEST_F(FaultTransportReceive, BytesFromSlotsLiveUntilTheNextCall) {
  with({.delay = 1ms}, 4);
  below_->arrive(packets(0, 1));
  receive();
  now_ += 1ms;
  below_->arrive(packets(2, 3));
  std::vector<Received> out(8);
  ASSERT_EQ(transport_->receive(out), 2u);
  EXPECT_EQ(bytes_of(out[0].bytes), data_packet(0, 100)) << "2 and 3 were copied into other slots";
  EXPECT_EQ(bytes_of(out[1].bytes), data_packet(1, 100));
}

TEST_F(FaultTransportReceive, ChurnThroughAFewSlotsLosesAndInventsNothing) {
  with({.duplicate = 0.3, .reorder = 0.3, .delay = 2ms}, 16);
  std::map<std::uint32_t, int> copies;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    if (i < 2900) below_->arrive({data_packet(i, 3000)});
    for (const std::uint32_t index : receive(3)) ++copies[index];
    now_ += 300us;
  }
  EXPECT_EQ(copies.size(), 2900u);
  std::uint64_t total = 0;
  for (const auto& [index, count] : copies) total += static_cast<std::uint64_t>(count);
  EXPECT_EQ(total, 2900 + transport_->fault_counters().duplicated);
}

TEST_F(FaultTransportWait, IsCutToTheNextRelease) {
  with({.delay = 5ms});
  below_->arrive(packets(0, 0));
  receive();
  now_ += 2ms;
  transport_->wait(1s);
  transport_->wait(1ms);
  now_ += 10ms;
  transport_->wait(1s);
  EXPECT_THAT(below_->waits, ElementsAre(Duration(3ms), Duration(1ms), Duration(0)));
}

TEST_F(FaultTransportWait, IsCutToTheHoldOfAReorderedPacket) {
  with({.reorder = 1.0});
  below_->arrive(packets(0, 0));
  receive();
  transport_->wait(1s);
  EXPECT_THAT(below_->waits, ElementsAre(kReorderHold));
}

TEST_F(FaultTransportWait, DoesNotSleepWhileADuplicateIsReady) {
  with({.duplicate = 1.0});
  below_->arrive(packets(0, 0));
  EXPECT_THAT(receive(1), ElementsAre(0));
  transport_->wait(1s);
  EXPECT_TRUE(below_->waits.empty());
}

TEST_F(FaultTransportWait, IsPassedOnWhenNothingIsHeld) {
  with({.loss = 0.5});
  transport_->wait(7ms);
  EXPECT_THAT(below_->waits, ElementsAre(Duration(7ms)));
}

TEST_F(FaultTransportTest, SendingWakingAndLimitsArePassedThrough) {
  with({.loss = 1.0});
  const OwnedTrain train(1, 100, pattern(100));
  EXPECT_EQ(send_one(*transport_, train.train), 1u);
  transport_->wake();
  EXPECT_EQ(below_->sent, 1u);
  EXPECT_EQ(below_->wakes, 1);
  EXPECT_EQ(transport_->counters().datagrams_sent, 1u);
  EXPECT_EQ(transport_->limits().datagram_bytes_max, 1472u);
  EXPECT_EQ(transport_->name(), "scripted+faults");
}

TEST_F(FaultTransportTest, NamedCountersShowTheInjectedLoss) {
  with({.loss = 1.0});
  below_->arrive({probe_packet(1), data_packet(0, 1), data_packet(1, 2)});
  receive();
  const auto rows = transport_->named_fault_counters();
  EXPECT_THAT(rows,
              testing::Contains(std::pair<std::string, std::uint64_t>("injected_lost_data", 2)));
  EXPECT_THAT(rows,
              testing::Contains(std::pair<std::string, std::uint64_t>("injected_lost_control", 1)));
}

}  // namespace
}  // namespace leeway::transport
