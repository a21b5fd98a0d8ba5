#include "seal/forwarding.h"

#include <gtest/gtest.h>

#include <cstring>

#include "seal/aead.h"
#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

NetworkAddress at(std::uint8_t host) {
  NetworkAddress address;
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, host};
  address.port = 7000;
  return address;
}

// A process that reaches peers 1 and 2 but not peer 3.
class ForwardingTest : public ::testing::Test {
 protected:
  ForwardingTest() {
    for (const Rank peer : {1, 2, 3}) {
      const NetworkAddress address = at(static_cast<std::uint8_t>(peer));
      roaming_.meet(now_, peer, {&address, 1}, peer * 100u);
      forwarding_.meet(peer, peer * 100u);
    }
    roaming_.on_wake(now_);
    while (const auto out = roaming_.poll()) {
      if (out->slot == 3) continue;
      roaming_.on_message(now_, out->slot, out->to,
                          {PathMessage::Kind::answer, out->message.token, at(0)});
    }
  }

  std::optional<Rank> ask(Rank from, std::uint64_t name, std::size_t bytes = 1000,
                          Ecn ecn = Ecn::none) {
    message_.assign(bytes, std::byte{7});
    const RelayHead head{.name = name};
    encode_relay_head(head, message_);
    return forwarding_.forward(now_, from, head, ecn, roaming_, message_);
  }

  Instant now_{1'000'000'000};
  Roaming roaming_{7};
  Forwarding forwarding_;
  std::vector<std::byte> message_;
};

TEST_F(ForwardingTest, TheReceiverReadsWhoseItIs) {
  ASSERT_EQ(ask(1, 200, 1000, Ecn::ce), Rank{2});
  const auto head = decode_relay_head(message_);
  ASSERT_TRUE(head);
  EXPECT_EQ(*head, (RelayHead{RelayHead::Kind::relayed, Ecn::ce, 100}));
  EXPECT_EQ(message_.size(), 1000u);  // not a byte more
  EXPECT_EQ(message_[kRelayHeadBytes], std::byte{7});
  EXPECT_EQ(forwarding_.counters().datagrams, 1u);
  EXPECT_EQ(forwarding_.counters().bytes, 1000 + kOverheadBytes);
}

TEST_F(ForwardingTest, NothingGoesToWhoIsNotReachedOrNotKnownOrAsksItself) {
  EXPECT_FALSE(ask(1, 300));  // it has never answered
  EXPECT_FALSE(ask(1, 400));
  EXPECT_FALSE(ask(1, 0));
  EXPECT_FALSE(ask(1, 100));
  EXPECT_EQ(forwarding_.counters().refused_target, 4u);
  EXPECT_EQ(forwarding_.counters().datagrams, 0u);
}

TEST_F(ForwardingTest, AQuarterOfTheUplinkIsForwarded) {
  forwarding_.set_uplink(100e6);
  std::uint64_t refused = 0;
  for (int i = 0; i < 100'000; ++i) {  // a flood of 800 Mb/s for 1 s
    refused += !ask(1, 200, 1000 - kOverheadBytes);
    now_ += 10us;
  }
  EXPECT_NEAR(static_cast<double>(forwarding_.counters().bytes), 25e6 / 8 + 0.05 * 25e6 / 8,
              20'000);
  EXPECT_EQ(forwarding_.counters().refused_share, refused);
  EXPECT_EQ(refused + forwarding_.counters().datagrams, 100'000u);
}

TEST_F(ForwardingTest, TheShareOfAnIdleSecondIsNotKept) {
  forwarding_.set_uplink(100e6);
  now_ += 100s;
  int taken = 0;
  while (ask(1, 200)) ++taken;
  EXPECT_LE(taken * 1000, 0.05 * 25e6 / 8);
  EXPECT_GE(taken, 100);
}

// Short datagrams must pass even if data do not. Otherwise a path at its limit would look like a
// dead one.
TEST_F(ForwardingTest, WhatIsShortPassesWhereDataDoNot) {
  forwarding_.set_uplink(1e6);
  while (ask(1, 200)) {
  }
  EXPECT_TRUE(ask(1, 200, 104));
  int taken = 0;
  while (ask(1, 200, 104)) ++taken;
  EXPECT_LE(taken, 100);
}

// Data must pass, too, because ENDs and repair requests alone would end no call.
TEST_F(ForwardingTest, DataPassAlthoughShortOnesAloneWouldTakeAll) {
  forwarding_.set_uplink(1e6);
  while (ask(1, 200) || ask(1, 200, 104)) {
  }
  std::uint64_t short_bytes = 0;
  std::uint64_t data_bytes = 0;
  for (int i = 0; i < 10'000; ++i) {  // 10 s of ten times the share
    now_ += 1ms;
    for (int k = 0; k < 2; ++k) short_bytes += ask(1, 200, 104).has_value() ? 104 : 0;
    data_bytes += i % 10 == 0 && ask(1, 200, 1000) ? 1000 : 0;
  }
  EXPECT_GE(data_bytes, 10 * 0.4 * 250e3 / 8);
  EXPECT_GE(short_bytes, 10 * 0.2 * 250e3 / 8);
}

TEST_F(ForwardingTest, ARateOfZeroIsAnUplinkThatNobodyKnows) {
  forwarding_.set_uplink(1e6);
  forwarding_.set_uplink(0);
  std::uint64_t taken = 0;
  for (int i = 0; i < 100'000; ++i) {
    taken += ask(1, 200, 1000 - kOverheadBytes).has_value();
    now_ += 10us;
  }
  EXPECT_NEAR(static_cast<double>(taken * 1000), 250e6 / 8 + 0.05 * 250e6 / 8, 1e5);
}

// Required by WIRE 9.10.
TEST_F(ForwardingTest, WhoeverWasRefusedNothingIsToldNothing) {
  forwarding_.set_uplink(100e6);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(ask(1, 200));
    EXPECT_FALSE(forwarding_.share_for(now_, 1));
    now_ += 1ms;
  }
  EXPECT_FALSE(forwarding_.share_for(now_, 2));
  EXPECT_FALSE(forwarding_.share_for(now_, 77));
}

TEST_F(ForwardingTest, TheFirstRefusalIsToldAtOnceAndFurtherOnesTogether) {
  forwarding_.set_uplink(16e6);
  while (ask(1, 200)) {
  }
  const auto first = forwarding_.share_for(now_, 1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->refused, 1u);
  EXPECT_EQ(first->bytes_per_second, 468'750u);  // 15/16 of a quarter
  int told = 0;
  for (int i = 0; i < 1000; ++i) {
    now_ += 100us;
    (void)ask(1, 200);
    told += forwarding_.share_for(now_, 1).has_value();
  }
  EXPECT_GE(told, 2);
  EXPECT_LE(told, 4);
}

// A sender that keeps to its share must be reminded of it. Without reminders it would forget the
// share, and refusals would begin anew.
TEST_F(ForwardingTest, WhoeverKeepsToItsShareIsRemindedEachSecond) {
  forwarding_.set_uplink(16e6);
  while (ask(1, 200)) {
  }
  ASSERT_TRUE(forwarding_.share_for(now_, 1));
  int told = 0;
  for (int i = 0; i < 1000; ++i) {  // 1 of 4 Mb/s
    now_ += 8ms;
    ASSERT_TRUE(ask(1, 200, 1000 - kOverheadBytes));
    told += forwarding_.share_for(now_, 1).has_value();
  }
  EXPECT_GE(told, 7);
  EXPECT_LE(told, 9);
}

// Two peers flood the relay first, and later keep to the rates that the relay told them. Each must
// get half, and when one ends, the other must get all.
TEST_F(ForwardingTest, SeveralShareEquallyAndLeaveNothingUnused) {
  constexpr double kShare = 25e6 / 8;
  forwarding_.set_uplink(100e6);
  std::array<double, 3> rate = {0, 10e6, 10e6};
  std::array<double, 3> owed{};
  std::array<std::uint64_t, 3> passed{};
  std::array<std::uint64_t, 3> refused{};
  const auto run = [&](Duration time, bool both) {
    passed = refused = {};
    for (const Instant end = now_ + time; now_ < end; now_ += 100us) {
      for (const Rank from : {1, 2}) {
        if (from == 2 && !both) continue;
        for (owed[from] += rate[from] * 1e-4; owed[from] >= 1000; owed[from] -= 1000) {
          const bool taken = ask(from, from == 1 ? 200 : 100, 1000 - kOverheadBytes).has_value();
          (taken ? passed : refused)[from] += 1000;
          if (const auto share = forwarding_.share_for(now_, from))
            rate[from] = static_cast<double>(share->bytes_per_second);
        }
      }
    }
  };
  run(1s, true);
  run(2s, true);
  for (const Rank from : {1, 2}) {
    EXPECT_NEAR(static_cast<double>(passed[from]), kShare, 0.15 * kShare) << from;
    EXPECT_LE(refused[from], passed[from] / 50) << from;
  }
  run(2s, false);
  run(1s, false);
  EXPECT_GE(static_cast<double>(passed[1]), 0.9 * kShare);
  run(1s, true);
  run(2s, true);
  EXPECT_NEAR(static_cast<double>(passed[1]), kShare, 0.15 * kShare);
  EXPECT_NEAR(static_cast<double>(passed[2]), kShare, 0.15 * kShare);
}

// The seal shows which process sent a datagram. So a relay that names another sender must not be
// believed.
TEST(ForwardingOpens, OnlyWhatTheNamedProcessSealed) {
  const Instant now{1'000'000'000};
  const CipherMaker maker = aead_maker(AeadKind::aes_128_gcm);
  Associations sender;
  sender.meet(now, 2, keys_of(1, true), maker);
  Associations receiver;
  Forwarding forwarding;
  receiver.meet(now, 1, keys_of(1, false), maker);
  receiver.meet(now, 3, keys_of(3, false), maker);
  forwarding.meet(1, 100);
  forwarding.meet(3, 300);

  const auto relayed = [&](bool path_message) {
    const std::array<std::byte, 5> plain = {std::byte{1}, std::byte{2}};
    std::vector<std::byte> opened(kRelayHeadBytes + plain.size() + kOverheadBytes);
    const MutableByteSpan inner = MutableByteSpan(opened).subspan(kRelayHeadBytes);
    const Slice slice{plain.data(), plain.size()};
    if (path_message) {
      sender.seal_path_message(2, ByteSpan(plain), inner);
    } else {
      sender.seal(now, {2, plain.size(), plain.size(), {&slice, 1}}, inner);
    }
    return opened;
  };
  const auto open = [&](std::vector<std::byte>& bytes, std::uint64_t name) {
    return forwarding.open(now, {RelayHead::Kind::relayed, Ecn::none, name}, receiver, bytes);
  };
  auto bytes = relayed(false);
  const auto copy = bytes;
  const auto opened = open(bytes, 100);
  EXPECT_EQ(opened.from, Rank{1});
  EXPECT_FALSE(opened.path_message);
  EXPECT_EQ(opened.bytes.size(), 5u);
  EXPECT_EQ(opened.bytes[1], std::byte{2});

  bytes = copy;
  EXPECT_EQ(open(bytes, 100).from, kNoRank);  // replayed
  bytes = relayed(true);
  EXPECT_TRUE(open(bytes, 100).path_message);
  bytes = relayed(false);
  EXPECT_EQ(open(bytes, 300).from, kNoRank);
  bytes = relayed(false);
  EXPECT_EQ(open(bytes, 999).from, kNoRank);
  bytes = relayed(false);
  bytes[kRelayHeadBytes + 18] ^= std::byte{1};
  EXPECT_EQ(open(bytes, 100).from, kNoRank);
  EXPECT_EQ(receiver.counters().refused_for(Refusal::forged), 1u);
  EXPECT_EQ(receiver.counters().refused_for(Refusal::replayed), 1u);
}

}  // namespace
}  // namespace leeway::seal
