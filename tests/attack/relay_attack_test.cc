// Relays as targets and as attackers: strangers send datagrams that look relayed, members request
// floods, relays drop, alter and repeat datagrams.
#include <gtest/gtest.h>

#include <random>

#include "seal/forwarding.h"
#include "support/relay_group.h"

namespace leeway::attack {
namespace {

using namespace std::chrono_literals;
using support::Bytes;
using support::RelayGroup;
using RelayedDatagram = RelayGroup::Flying;

constexpr Rank kRelay = 0;

NetworkAddress stranger() {
  NetworkAddress address = RelayGroup::address_of(65);
  address.port = 666;
  return address;
}

Bytes junk(std::mt19937& random, std::size_t bytes) {
  Bytes out(bytes);
  for (std::byte& one : out) one = std::byte(random());
  return out;
}

std::uint64_t forwarded(const RelayGroup& group) {
  return group.counter(kRelay, "forwarded");
}

class RelayAttack : public ::testing::Test {
 protected:
  RelayAttack() {
    group_.cut(1, 2);
    group_.run(1200ms);
    EXPECT_EQ(group_.at(1).relay_of(2), kRelay);
  }

  RelayGroup group_{3};
  std::mt19937 random_{5};
};

// Relays forward neither junk nor datagrams sealed with wrong keys.
TEST_F(RelayAttack, AStrangersDatagramsAreNotForwardedAndNotAnswered) {
  const std::uint64_t before = forwarded(group_);
  std::uint64_t to_stranger = 0;
  std::uint64_t sent = 0;
  group_.network = [&](const RelayedDatagram& one) {
    to_stranger += one.to == stranger();
    sent += one.from == RelayGroup::address_of(kRelay) && one.bytes.size() > 200;
    return std::vector{one};
  };
  // These keys have the member's tags, but are made from another secret.
  seal::PairKeys keys = RelayGroup::keys_of(1, kRelay);
  keys.root.fill(std::byte{9});
  seal::Associations own;
  own.meet(group_.now(), kRelay, keys, seal::aead_maker(seal::AeadKind::aes_128_gcm));
  for (int i = 0; i < 500; ++i) {
    Bytes message(seal::kRelayHeadBytes + 600);
    seal::encode_relay_head({.name = RelayGroup::name_of(2)}, message);
    Bytes sealed(message.size() + seal::kOverheadBytes);
    own.seal_path_message(kRelay, ByteSpan(message), sealed);
    group_.inject({stranger(), RelayGroup::address_of(kRelay), sealed});
    group_.inject({RelayGroup::address_of(1), RelayGroup::address_of(kRelay), sealed});
    group_.inject({stranger(), RelayGroup::address_of(kRelay), message});
    Bytes formed = junk(random_, 700);
    seal::encode_header({.path_message = true, .tag = keys.outbound_tag, .counter = 1000u + i},
                        formed);
    group_.inject({stranger(), RelayGroup::address_of(kRelay), formed});
  }
  group_.run(100ms);
  EXPECT_EQ(to_stranger, 0u);
  EXPECT_EQ(sent, 0u);
  EXPECT_LE(forwarded(group_) - before, 4u);  // the two members' own questions
  EXPECT_GE(group_.counter(kRelay, "refused_forged"), 1400u);
}

// The attacker sends 20 copies of each request to the relay. The relay must forward none of them.
TEST_F(RelayAttack, ACopiedRequestIsForwardedOnce) {
  group_.network = [](const RelayedDatagram& one) {
    std::vector<RelayedDatagram> all = {one};
    if (one.to != RelayGroup::address_of(kRelay)) return all;
    for (int i = 0; i < 20; ++i) {
      all.push_back(one);
      all.back().from = i % 2 == 0 ? stranger() : one.from;
      all.back().delay += 1ms * i;
    }
    return all;
  };
  const std::uint64_t before = forwarded(group_);
  for (int i = 0; i < 20; ++i) group_.send(1, 2, Bytes(600, std::byte{1}), 600);
  group_.run(100ms);
  EXPECT_EQ(group_.take_heard(2, 1).size(), 20u);
  EXPECT_LE(forwarded(group_) - before, 24u);
  EXPECT_EQ(group_.bytes_to(stranger()), 0u);
}

TEST_F(RelayAttack, AMembersFloodTakesAQuarterOfTheUplinkAndNoMoreThanItSends) {
  constexpr double kUplink = 80e6;
  group_.at(kRelay).set_uplink(kUplink);
  const std::uint64_t out_before = group_.bytes_to(RelayGroup::address_of(2));
  const std::uint64_t in_before = group_.bytes_to(RelayGroup::address_of(kRelay));
  const Bytes flood(40 * 1200, std::byte{1});
  for (int i = 0; i < 1000; ++i) {  // 384 Mb/s
    group_.send(1, 2, flood, 1200);
    group_.run(1ms);
  }
  const double out = static_cast<double>(group_.bytes_to(RelayGroup::address_of(2)) - out_before);
  const double in =
      static_cast<double>(group_.bytes_to(RelayGroup::address_of(kRelay)) - in_before);
  EXPECT_LE(out, 0.25 * kUplink / 8 * 1.02 + 2 * 65'536 + 20'000);
  EXPECT_GE(out, 0.25 * kUplink / 8 * 0.9);
  EXPECT_LE(out, in);
  EXPECT_GE(group_.counter(kRelay, "forwarding_refused_share"), 25'000u);
  EXPECT_EQ(group_.at(1).relay_of(2), kRelay);  // questions pass
}

TEST_F(RelayAttack, AMemberReachesNobodyWhoIsNoMember) {
  const std::uint64_t refused = group_.counter(kRelay, "forwarding_refused_target");
  seal::Associations member;
  member.meet(group_.now(), kRelay, RelayGroup::keys_of(1, kRelay),
              seal::aead_maker(seal::AeadKind::aes_128_gcm));
  std::uint64_t left = 0;
  group_.network = [&](const RelayedDatagram& one) {
    left += one.from == RelayGroup::address_of(kRelay) && one.bytes.size() > 200;
    return std::vector{one};
  };
  Bytes message(seal::kRelayHeadBytes + 600, std::byte{2});
  Bytes sealed(message.size() + seal::kOverheadBytes);
  const auto ask_for = [&](std::uint64_t name) {
    seal::encode_relay_head({.name = name}, message);
    member.seal_path_message(kRelay, ByteSpan(message), sealed);
    group_.inject({RelayGroup::address_of(1), RelayGroup::address_of(kRelay), sealed});
  };
  // The relay refuses datagram numbers that rank 1 has used, so this sends more requests than that.
  for (int i = 0; i < 2000; ++i) ask_for(RelayGroup::name_of(77));
  for (int i = 0; i < 100; ++i) ask_for(RelayGroup::name_of(1));  // and to itself
  for (int i = 0; i < 100; ++i) ask_for(RelayGroup::name_of(kRelay));
  group_.run(200ms);
  EXPECT_EQ(left, 0u);
  EXPECT_GE(group_.counter(kRelay, "forwarding_refused_target") - refused, 2000u);
}

// WIRE 9.10: a share message has no effect if a stranger made it, or a member that is no relay.
TEST_F(RelayAttack, NobodyButItsRelaySlowsAProcessDown) {
  Bytes message(seal::kShareMessageBytes);
  seal::encode_share_message({.refused = 0, .bytes_per_second = 1}, message);
  Bytes sealed(message.size() + seal::kOverheadBytes);
  seal::PairKeys keys = RelayGroup::keys_of(kRelay, 1);
  keys.root.fill(std::byte{9});
  seal::Associations own;
  own.meet(group_.now(), 1, keys, seal::aead_maker(seal::AeadKind::aes_128_gcm));
  for (int i = 0; i < 100; ++i) {
    own.seal_path_message(1, ByteSpan(message), sealed);
    group_.inject({RelayGroup::address_of(kRelay), RelayGroup::address_of(1), sealed});
  }
  group_.run(20ms);
  EXPECT_GE(group_.counter(1, "refused_forged"), 90u);
  EXPECT_EQ(group_.counter(1, "relay_words_refused"), 0u);

  seal::Associations member;  // a sender whose numbers are past those that the relay used
  member.meet(group_.now(), 0, RelayGroup::keys_of(1, 0),
              seal::aead_maker(seal::AeadKind::aes_128_gcm));
  for (int i = 0; i < 2000; ++i) {
    member.seal_path_message(0, ByteSpan(message), sealed);
    group_.inject({RelayGroup::address_of(1), RelayGroup::address_of(0), sealed});
  }
  group_.run(20ms);
  EXPECT_GE(group_.counter(0, "relay_words_refused"), 100u);  // it sends nothing through rank 1
  EXPECT_FALSE(group_.at(0).poll_share());
  EXPECT_FALSE(group_.at(1).poll_share());
}

// A member that is a relay and misbehaves. It answers challenges at its own address, so other
// members choose it as their relay.
class BadRelay {
 public:
  explicit BadRelay(RelayGroup& group) : group_(group) {
    for (const Rank peer : {1, 2}) {
      seals_.meet(group.now(), peer, RelayGroup::keys_of(kRelay, peer),
                  seal::aead_maker(seal::AeadKind::aes_128_gcm));
    }
    group.network = [this](const RelayedDatagram& one) {
      if (one.from == RelayGroup::address_of(kRelay)) return std::vector<RelayedDatagram>();
      if (one.to != RelayGroup::address_of(kRelay)) return std::vector{one};
      take(one);
      return std::vector<RelayedDatagram>();
    };
  }

  void say_share(Rank to, const seal::ShareMessage& share) {
    Bytes message(seal::kShareMessageBytes);
    seal::encode_share_message(share, message);
    say(to, message);
  }

  // Returns the datagrams that the relay forwards in place of `inner`, which one member sealed for
  // another.
  std::function<std::vector<Bytes>(const Bytes& inner)> betrays;

 private:
  void take(const RelayedDatagram& one) {
    Bytes bytes = one.bytes;
    const auto opened = seals_.open_from_anywhere(group_.now(), kNoRank, bytes);
    if (opened.from == kNoRank || !opened.path_message) return;
    if (const auto head = seal::decode_relay_head(opened.bytes)) {
      const auto to = static_cast<Rank>(head->name - RelayGroup::name_of(0));
      for (const Bytes& inner :
           betrays({opened.bytes.begin() + seal::kRelayHeadBytes, opened.bytes.end()})) {
        Bytes message(seal::kRelayHeadBytes);
        seal::encode_relay_head(
            {seal::RelayHead::Kind::relayed, Ecn::none, RelayGroup::name_of(opened.from)}, message);
        message.insert(message.end(), inner.begin(), inner.end());
        say(to, message);
      }
    } else if (const auto asks = seal::decode_path_message(opened.bytes);
               asks && asks->kind == seal::PathMessage::Kind::challenge) {
      Bytes message(seal::kPathMessageBytesMax);
      seal::encode_path_message({seal::PathMessage::Kind::answer, asks->token, one.from}, message);
      say(opened.from, message);
    }
  }
  void say(Rank to, const Bytes& message) {
    Bytes sealed(message.size() + seal::kOverheadBytes);
    seals_.seal_path_message(to, ByteSpan(message), sealed);
    group_.inject({RelayGroup::address_of(kRelay), RelayGroup::address_of(to), sealed});
  }

  RelayGroup& group_;
  seal::Associations seals_;
};

bool is_path_message(const Bytes& inner) {
  seal::Header header;
  return seal::decode_header(inner, header) == seal::Refusal::none && header.path_message;
}

class RelayThatIsBad : public ::testing::Test {
 protected:
  RelayThatIsBad() : relay_(group_) { group_.cut(1, 2); }

  // Sends 50 datagrams through the relay. Returns those that the receiver's core gets.
  std::vector<Bytes> exchange() {
    relay_.betrays = [](const Bytes& inner) { return std::vector<Bytes>{inner}; };
    group_.run(1200ms);
    EXPECT_EQ(group_.at(1).relay_of(2), kRelay);
    relay_.betrays = bad_;
    for (int i = 0; i < 50; ++i) group_.send(1, 2, numbered(i), 100);
    group_.run(200ms);
    return group_.take_heard(2, 1);
  }
  static Bytes numbered(int i) { return Bytes(100, std::byte(i)); }

  RelayGroup group_{3};
  BadRelay relay_;
  std::function<std::vector<Bytes>(const Bytes& inner)> bad_;
};

TEST_F(RelayThatIsBad, CanBeGood) {
  bad_ = [](const Bytes& inner) { return std::vector<Bytes>{inner}; };
  EXPECT_EQ(exchange().size(), 50u);  // else the tests below show nothing
}

TEST_F(RelayThatIsBad, DroppingIsLoss) {
  int count = 0;
  bad_ = [&](const Bytes& inner) {
    const bool drops = !is_path_message(inner) && count++ % 2 == 0;
    return drops ? std::vector<Bytes>() : std::vector<Bytes>{inner};
  };
  const auto heard = exchange();
  EXPECT_EQ(heard.size(), 25u);
  for (const Bytes& one : heard) EXPECT_EQ(one, numbered(std::to_integer<int>(one[0])));
}

TEST_F(RelayThatIsBad, AlteringIsLoss) {
  std::mt19937 random(3);
  bad_ = [&](const Bytes& inner) {
    std::vector<Bytes> all;
    for (int i = 0; i < 5; ++i) {
      Bytes other = inner;
      other[random() % other.size()] ^= std::byte(1 + random() % 255);
      all.push_back(other);
    }
    all.push_back(junk(random, random() % 200));
    return all;
  };
  EXPECT_TRUE(exchange().empty());
}

TEST_F(RelayThatIsBad, RepeatingChangesNothing) {
  std::vector<Bytes> all;
  bad_ = [&](const Bytes& inner) {
    all.push_back(inner);
    return all;  // everything so far, again and again
  };
  const auto heard = exchange();
  ASSERT_EQ(heard.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(heard[static_cast<std::size_t>(i)], numbered(i));
}

// A relayed datagram that asks to be relayed again is dropped.
TEST_F(RelayThatIsBad, SendingBackAndNestingChangesNothing) {
  bad_ = [](const Bytes& inner) {
    Bytes nested(seal::kRelayHeadBytes);
    seal::encode_relay_head({.name = RelayGroup::name_of(1)}, nested);
    nested.insert(nested.end(), inner.begin(), inner.end());
    return std::vector<Bytes>{nested};
  };
  EXPECT_TRUE(exchange().empty());
  EXPECT_TRUE(group_.take_heard(1, 2).empty());
}

TEST_F(RelayThatIsBad, SayingThatItRelaysNothingSlowsDownWhatGoesThroughItAlone) {
  bad_ = [](const Bytes& inner) { return std::vector<Bytes>{inner}; };
  EXPECT_EQ(exchange().size(), 50u);
  relay_.say_share(1, {.refused = 1, .bytes_per_second = 0});
  relay_.say_share(1, {.refused = 4'000'000'000, .bytes_per_second = 0});
  group_.run(20ms);
  const auto share = group_.at(1).poll_share();
  ASSERT_TRUE(share);
  EXPECT_EQ(share->relay, kRelay);
  EXPECT_EQ(share->bytes_per_second, seal::RelayShares::kLeast);
  EXPECT_FALSE(group_.at(1).poll_share());
  // The second message claims more refused datagrams than were sent, so it is refused.
  EXPECT_EQ(group_.counter(1, "relay_words_refused"), 1u);
}

// The relay drops everything. The members look for another relay. There is none, so they try the
// direct path, and must find it when it works again.
TEST_F(RelayThatIsBad, DroppingEverythingIsFoundOut) {
  group_.set_busy(true);
  bad_ = [](const Bytes&) { return std::vector<Bytes>(); };
  (void)exchange();
  group_.run(2s);
  group_.mend(1, 2);
  group_.run(40s, 5ms);
  EXPECT_EQ(group_.at(1).relay_of(2), kNoRank);
}

}  // namespace
}  // namespace leeway::attack
