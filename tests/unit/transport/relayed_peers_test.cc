// Tests sealed peers without a path between them, through a third one.
#include <gtest/gtest.h>

#include <array>

#include "support/relay_group.h"
#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;
using support::RelayGroup;

class RelayedPeersTest : public ::testing::Test {
 protected:
  RelayedPeersTest() { group_.cut(1, 2); }

  RelayGroup group_{3};
};

TEST_F(RelayedPeersTest, TrainsArriveAsTheyWereSentDatagramByDatagram) {
  group_.run(1200ms);
  ASSERT_EQ(group_.at(1).relay_of(2), 0u);
  const Bytes sent = pattern(5 * 1200 + 333);
  group_.send(1, 2, sent, 1200);
  group_.run(20ms);
  const auto heard = group_.take_heard(2, 1);
  ASSERT_EQ(heard.size(), 6u);
  Bytes all;
  for (const Bytes& one : heard) all.insert(all.end(), one.begin(), one.end());
  EXPECT_EQ(all, sent);
  EXPECT_EQ(heard[0].size(), 1200u);
  EXPECT_GE(group_.counter(0, "forwarded"), 6u);
  EXPECT_EQ(group_.counter(1, "relays_found"), 1u);
}

TEST_F(RelayedPeersTest, KeysChangeThroughTheRelay) {
  group_.run(1200ms);
  ASSERT_EQ(group_.at(1).relay_of(2), 0u);
  EXPECT_EQ(group_.counter(1, "key_phases"), 2u);
  EXPECT_EQ(group_.counter(2, "key_phases"), 2u);
  group_.run(121s, 10ms);
  EXPECT_EQ(group_.counter(1, "key_phases"), 4u);
  EXPECT_EQ(group_.counter(2, "key_phases"), 4u);
  const Bytes sent = pattern(600);
  group_.send(1, 2, sent, 600);
  group_.run(50ms);
  EXPECT_EQ(group_.take_heard(2, 1), std::vector<Bytes>{sent});
}

TEST_F(RelayedPeersTest, TheLongestTrainBecomesTwo) {
  group_.run(1200ms);
  const TransportLimits& limits = group_.at(1).limits();
  const std::size_t segment = limits.train_bytes_max / limits.train_datagrams_max;
  const Bytes sent = pattern(segment * limits.train_datagrams_max);
  group_.at(0).set_uplink(8e9);
  group_.send(1, 2, sent, segment);
  group_.run(20ms);
  const auto heard = group_.take_heard(2, 1);
  ASSERT_EQ(heard.size(), limits.train_datagrams_max);
  Bytes all;
  for (const Bytes& one : heard) all.insert(all.end(), one.begin(), one.end());
  EXPECT_EQ(all, sent);
  EXPECT_LE(group_.longest_train(), 65'507u);
}

TEST_F(RelayedPeersTest, WhatTheRelaySeesIsSealedForTheReceiver) {
  const Bytes secret = pattern(600);
  std::vector<Bytes> flying;
  // Loses messages about keys, so that the keys stay those that the test knows.
  group_.network = [&](const RelayGroup::Flying& one) {
    flying.push_back(one.bytes);
    const bool is_lost = one.bytes.size() == seal::Association::kMessageBytesMax;
    return is_lost ? std::vector<RelayGroup::Flying>() : std::vector{one};
  };
  group_.run(1200ms);
  group_.send(1, 2, secret, 600);
  group_.run(20ms);
  ASSERT_EQ(group_.take_heard(2, 1).size(), 1u);
  // With its own keys the relay opens the hop, and sees 12 bytes of head and a sealed datagram.
  seal::Associations relay;
  relay.meet(group_.now(), 1, RelayGroup::keys_of(0, 1),
             seal::aead_maker(seal::AeadKind::aes_128_gcm));
  bool seen = false;
  for (Bytes& bytes : flying) {
    const auto opened = relay.open_from_anywhere(group_.now(), kNoRank, bytes);
    if (opened.from == kNoRank || opened.bytes.size() < secret.size()) continue;
    seen = true;
    EXPECT_EQ(opened.bytes.size(), 12 + 16 + secret.size() + 16);
    EXPECT_EQ(
        std::search(opened.bytes.begin(), opened.bytes.end(), secret.begin(), secret.begin() + 16),
        opened.bytes.end());
  }
  EXPECT_TRUE(seen);
}

TEST_F(RelayedPeersTest, TrafficGoesStraightWhenThereIsAPath) {
  group_.run(1200ms);
  ASSERT_EQ(group_.at(1).relay_of(2), 0u);
  group_.mend(1, 2);
  group_.run(40s, 5ms);
  EXPECT_EQ(group_.at(1).relay_of(2), kNoRank);
  const std::uint64_t before = group_.counter(0, "forwarded");
  group_.send(1, 2, pattern(600), 600);
  group_.run(20ms);
  EXPECT_EQ(group_.take_heard(2, 1).size(), 1u);
  EXPECT_EQ(group_.counter(0, "forwarded"), before);
}

// A congestion mark (ECN) on either hop must mark the datagram. A datagram without a relay keeps
// its own mark.
TEST_F(RelayedPeersTest, MarksOfTheNetworkSurviveTheSeal) {
  group_.run(1200ms);
  group_.mark(Ecn::ce);
  for (const auto& [from, to] : {std::pair<Rank, Rank>{0, 1}, {1, 2}}) {
    group_.send(from, to, pattern(100), 100);
    group_.run(20ms);
    const auto heard = group_.take_heard_with_marks(to, from);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0], Ecn::ce);
  }
}

TEST(RelayedPeers, ARelayThatDiesIsReplacedBeforeAnybodyIsGivenUp) {
  RelayGroup group(4);
  group.cut(2, 3);
  group.set_busy(true);
  group.run(1200ms);
  ASSERT_EQ(group.at(2).relay_of(3), 0u);
  for (const Rank other : {1, 2, 3}) group.cut(0, other);
  group.run(2s);
  EXPECT_EQ(group.at(2).relay_of(3), 1u);
  group.send(2, 3, pattern(600), 600);
  group.run(20ms);
  EXPECT_EQ(group.take_heard(3, 2).size(), 1u);
}

// Required by WIRE 9.10.
TEST_F(RelayedPeersTest, ARelayWithoutShareForAllSaysWhatItPassesOn) {
  group_.run(1200ms);
  group_.at(0).set_uplink(16e6);
  EXPECT_FALSE(group_.at(1).poll_share());
  for (int i = 0; i < 400; ++i) {  // 9.6 Mb/s
    group_.send(1, 2, pattern(1200), 1200);
    group_.run(1ms);
  }
  group_.run(20ms);
  const auto share = group_.at(1).poll_share();
  ASSERT_TRUE(share);
  EXPECT_EQ(share->relay, 0u);
  EXPECT_NEAR(static_cast<double>(share->bytes_per_second), 15e6 / 4 / 8, 1000);
  // Refusals since the last message are told in the next one, so some may be missing.
  const std::uint64_t refused = group_.counter(0, "forwarding_refused_share");
  EXPECT_GE(group_.counter(1, "refused_by_relays"), refused - 25);
  EXPECT_LE(group_.counter(1, "refused_by_relays"), refused);
  EXPECT_EQ(group_.counter(1, "relay_words_refused"), 0u);
  EXPECT_FALSE(group_.at(2).poll_share());  // it sent nothing
}

}  // namespace
}  // namespace leeway::transport
