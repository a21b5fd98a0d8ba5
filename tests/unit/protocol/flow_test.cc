#include "protocol/flow.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/limits.h"

namespace leeway::protocol {
namespace {

ReceiveFlow receiving(std::uint32_t packets, std::initializer_list<std::uint32_t> missing) {
  ReceiveFlow flow;
  flow.packets = packets;
  flow.arrived.resize(packets);
  for (std::uint32_t i = 0; i < packets; ++i) flow.arrived.set(i);
  for (const std::uint32_t i : missing) flow.arrived.clear(i);
  flow.arrived_count = packets - static_cast<std::uint32_t>(missing.size());
  return flow;
}

TEST(ReceiveFlowNeedsMore, AsTheDeliveryClassSays) {
  const ReceiveFlow flow = receiving(100, {3, 4});
  EXPECT_TRUE(flow.needs_more(Delivery::Kind::exact, 0.0, false));
  EXPECT_TRUE(flow.needs_more(Delivery::Kind::bounded, 0.01, false));
  EXPECT_FALSE(flow.needs_more(Delivery::Kind::bounded, 0.02, false));
  EXPECT_FALSE(flow.needs_more(Delivery::Kind::best_effort, 0.0, false));
}

TEST(ReceiveFlowNeedsMore, WhatIsRequiredMustComeInAnyClass) {
  ReceiveFlow flow = receiving(100, {3});
  Bitmap required(100);
  flow.required = &required;
  required.set(4);
  EXPECT_FALSE(flow.needs_more(Delivery::Kind::best_effort, 0.0, false));
  required.set(3);
  EXPECT_TRUE(flow.needs_more(Delivery::Kind::best_effort, 0.0, false));
}

TEST(ReceiveFlowRequest, NamesEveryMissingPacketInDatagramsOfSomeWords) {
  ReceiveFlow flow = receiving(300, {0, 70, 299});
  flow.requested_pass = 1;
  flow.ask_for_all();
  std::array<std::uint64_t, 2> words;
  wire::Repair repair;
  ASSERT_EQ(flow.next_request(true, words, repair), 2u);
  EXPECT_EQ(repair.base, 0u);
  EXPECT_EQ(repair.attempt, 2u);
  EXPECT_FALSE(repair.last);
  EXPECT_EQ(words, (std::array<std::uint64_t, 2>{1, 1u << 6}));
  ASSERT_EQ(flow.next_request(true, words, repair), 1u) << "two words without a hole are skipped";
  EXPECT_EQ(repair.base, 256u);
  EXPECT_TRUE(repair.last);
  EXPECT_EQ(words[0], std::uint64_t{1} << 43) << "and nothing beyond the last packet";
  EXPECT_EQ(flow.next_request(true, words, repair), 0u);
}

TEST(ReceiveFlowRequest, MayNameOnlyWhatIsRequired) {
  ReceiveFlow flow = receiving(64, {1, 2, 3});
  Bitmap required(64);
  required.set(2);
  flow.required = &required;
  flow.ask_for_all();
  std::array<std::uint64_t, 1> words;
  wire::Repair repair;
  ASSERT_EQ(flow.next_request(false, words, repair), 1u);
  EXPECT_EQ(words[0], 4u);
}

class EarlyRequest : public ::testing::Test {  // WIRE 5.9
 protected:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  EarlyRequest() { flow_.early.resize(220); }
  std::size_t next() { return flow_.next_request(true, words_, repair_); }

  ReceiveFlow flow_ = receiving(220, {16, 31, 70, 200, 219});
  std::array<std::uint64_t, 4> words_;
  wire::Repair repair_;
};

TEST_F(EarlyRequest, IsForWhatIsMissingOfWhatHasLeft) {
  ASSERT_TRUE(flow_.ask_early({.word = 0, .packets = 0xFFFFFF}));
  EXPECT_EQ(flow_.awaited_pass(), 0u) << "its answer is part of the first pass";
  ASSERT_EQ(next(), 1u);
  EXPECT_EQ(words_[0], std::uint64_t{1} << 16) << "31 may still come";
  EXPECT_TRUE(repair_.last);
  EXPECT_EQ(repair_.attempt, 1u);
  EXPECT_FALSE(flow_.ask_early({.word = 2, .packets = kAll})) << "nothing is missing of it";
  flow_.ask_for_all();
  EXPECT_EQ(flow_.awaited_pass(), 2u);
}

TEST_F(EarlyRequest, IsForEachPacketOnce) {
  ASSERT_TRUE(flow_.ask_early({.word = 0, .packets = 0xFFFFFF}));
  ASSERT_EQ(next(), 1u);
  ASSERT_TRUE(flow_.ask_early({.word = 0, .packets = kAll << 24}));
  ASSERT_EQ(next(), 1u);
  EXPECT_EQ(words_[0], std::uint64_t{1} << 31);
  EXPECT_EQ(repair_.attempt, 2u);
}

TEST_F(EarlyRequest, TakesWithItWhatHasNotBeenWritten) {
  ASSERT_TRUE(flow_.ask_early({.word = 3, .packets = 0xFFFFFFF}));
  ASSERT_TRUE(flow_.ask_early({.word = 1, .packets = kAll}));
  ASSERT_EQ(next(), 3u);
  EXPECT_EQ(repair_.base, 64u);
  EXPECT_EQ(words_[0], std::uint64_t{1} << 6);
  EXPECT_EQ(words_[1], 0u);
  EXPECT_EQ(words_[2], (1u << 8) | (1u << 27));
  EXPECT_EQ(next(), 0u);
}

class Repaired : public ::testing::Test {
 protected:
  Repaired() {
    flow_.packets = 200;
    flow_.wanted.resize(200);
    flow_.cursor = schedule::PacketCursor(schedule::PacketGrid(200, 1, 1), {}, nullptr);
    while (flow_.cursor.next()) {
    }
  }
  SendFlow::Request ask(std::uint16_t attempt, std::uint32_t base,
                        std::vector<std::uint64_t> words) {
    const wire::Repair repair{
        .attempt = attempt, .base = base, .words = static_cast<std::uint32_t>(words.size())};
    return flow_.take_request(repair, std::as_bytes(std::span(words)));
  }
  std::vector<std::uint32_t> answered(double delivered = 1) {
    std::vector<std::uint32_t> packets;
    while (const auto index = flow_.next_repair(delivered)) packets.push_back(index->value);
    return packets;
  }

  SendFlow flow_;
};

TEST_F(Repaired, PacketsAreThoseAskedForInOrder) {
  EXPECT_EQ(ask(1, 64, {0b101}), SendFlow::Request::taken);
  EXPECT_EQ(ask(1, 128, {1}), SendFlow::Request::taken);
  EXPECT_EQ(answered(), (std::vector<std::uint32_t>{64, 66, 128}));
  EXPECT_EQ(flow_.pass, 1u);
}

TEST_F(Repaired, CopiesOfARequestAreIgnoredAndANewOneReplacesIt) {  // WIRE 5.2, 5.3
  EXPECT_EQ(ask(1, 0, {0b111}), SendFlow::Request::taken);
  EXPECT_EQ(ask(1, 0, {0b111}), SendFlow::Request::ignored);
  EXPECT_EQ(ask(2, 0, {0b100}), SendFlow::Request::taken);
  EXPECT_EQ(ask(1, 64, {1}), SendFlow::Request::ignored) << "an older one";
  EXPECT_EQ(answered(), (std::vector<std::uint32_t>{2}));
}

TEST_F(Repaired, WordsBeyondTheFlowAreRefusedAndBitsIgnored) {
  EXPECT_EQ(ask(1, 192, {1, 1}), SendFlow::Request::refused);
  EXPECT_EQ(ask(1, 192, {~std::uint64_t{0}}), SendFlow::Request::taken);
  EXPECT_EQ(answered().size(), 8u);
}

TEST_F(Repaired, ARequestGetsOnePacketOnceTheFlowWasSentFourTimesAgain) {  // WIRE 5.7
  const std::vector<std::uint64_t> all = {~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0},
                                          0xFF};
  std::uint16_t attempt = 0;
  for (std::uint32_t i = 0; i < limits::kRepairsPerPacket; ++i) {
    EXPECT_EQ(ask(++attempt, 0, all), SendFlow::Request::taken);
    EXPECT_EQ(answered().size(), 200u);
  }
  EXPECT_EQ(ask(++attempt, 0, all), SendFlow::Request::taken);
  EXPECT_EQ(answered(), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(ask(++attempt, 64, {0b110}), SendFlow::Request::taken);
  EXPECT_EQ(answered(), (std::vector<std::uint32_t>{65})) << "an honest receiver still gets on";
}

// If the sender's own bursts fill a short queue, three of four packets are lost. A limit of four
// sendings then made a call take minutes.
TEST_F(Repaired, MoreAreSentAgainWhereFewArrive) {  // WIRE 5.7
  const std::vector<std::uint64_t> all = {~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0},
                                          0xFF};
  std::uint16_t attempt = 0;
  const auto times = [&](double delivered) {
    flow_.repairs = 0;
    int full = 0;
    while (ask(++attempt, 0, all), answered(delivered).size() == 200) ++full;
    return full;
  };
  EXPECT_EQ(times(0.25), 16);
  EXPECT_EQ(times(0.01), 64) << "whatever a receiver claims";
}

// A flow that has sent packets 0 to 99 of its first pass.
class RepairedAside : public Repaired {
 protected:
  RepairedAside() {
    flow_.cursor = schedule::PacketCursor(schedule::PacketGrid(200, 1, 1), {}, nullptr);
    flow_.left.resize(200);
    for (std::uint32_t i = 0; i < 100; ++i) flow_.left.set(flow_.cursor.next()->value);
  }
};

// Packets that have not left yet may have no payload (WIRE 5.9).
TEST_F(RepairedAside, OnlyWhatHasLeftIsSentAgain) {
  EXPECT_EQ(ask(1, 64, {~std::uint64_t{0}}), SendFlow::Request::taken);
  EXPECT_EQ(flow_.aside, 1u);
  EXPECT_TRUE(flow_.repairs_aside());
  const auto packets = answered();
  ASSERT_EQ(packets.size(), 36u);
  EXPECT_EQ(packets.back(), 99u);
  EXPECT_TRUE(flow_.first_pass());
  EXPECT_FALSE(flow_.repairs_aside());
}

TEST_F(RepairedAside, RequestsOfSeveralChunksAddUpAndOldOnesAndCopiesAreIgnored) {
  EXPECT_EQ(ask(2, 0, {0b1}), SendFlow::Request::taken);
  EXPECT_EQ(ask(2, 0, {0b1}), SendFlow::Request::ignored);
  EXPECT_EQ(ask(3, 64, {0b1}), SendFlow::Request::taken);
  EXPECT_EQ(ask(1, 0, {0b10}), SendFlow::Request::ignored);
  EXPECT_EQ(ask(4, 256, {0b1}), SendFlow::Request::refused);
  EXPECT_EQ(answered(), (std::vector<std::uint32_t>{0, 64}));
}

TEST_F(RepairedAside, OneThatComesLaterIsLikeAnyOther) {
  EXPECT_EQ(ask(1, 0, {0b1}), SendFlow::Request::taken);
  while (flow_.cursor.next()) {
  }
  EXPECT_EQ(ask(2, 0, {0b110}), SendFlow::Request::taken);
  EXPECT_EQ(flow_.pass, 2u);
  EXPECT_EQ(answered(), (std::vector<std::uint32_t>{1, 2})) << "in place of what was asked before";
}

TEST_F(Repaired, NothingIsBeforeTheFirstPassIsOver) {  // WIRE 5.4
  flow_.cursor = schedule::PacketCursor(schedule::PacketGrid(200, 1, 1), {}, nullptr);
  EXPECT_EQ(ask(1, 0, {1}), SendFlow::Request::ignored);
}

}  // namespace
}  // namespace leeway::protocol
