#include "seal/associations.h"

#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <atomic>
#include <cstdlib>

#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

// Counts OpenSSL's allocations in this process.
std::atomic<std::uint64_t> openssl_allocations{0};
const int counts_allocations = CRYPTO_set_mem_functions(
    [](std::size_t bytes, const char*, int) {
      ++openssl_allocations;
      return std::malloc(bytes);
    },
    [](void* memory, std::size_t bytes, const char*, int) {
      ++openssl_allocations;
      return std::realloc(memory, bytes);
    },
    [](void* memory, const char*, int) { std::free(memory); });

TEST(AssociationsSeal, CutsATrainIntoDatagramsOfTheirOwn) {
  PairOfTwo pair;
  const Bytes plain = pattern(3 * 100 + 40);
  const Slice slices[] = {{plain.data(), 30}, {plain.data() + 30, 0}, {plain.data() + 30, 310}};
  const Train train{1, 100, plain.size(), slices};
  Bytes out(Associations::sealed_bytes(train));
  EXPECT_EQ(out.size(), plain.size() + 4 * kOverheadBytes);
  ASSERT_EQ(pair.ends[0].seal(pair.now, train, out), out.size());
  Bytes all;
  for (std::size_t at = 0; at < out.size(); at += 132) {
    const Bytes part = pair.open(
        1, Bytes(out.begin() + static_cast<std::ptrdiff_t>(at),
                 out.begin() + static_cast<std::ptrdiff_t>(std::min(at + 132, out.size()))));
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(all, plain);
}

TEST(AssociationsSeal, AllocatesNothingForADatagram) {
  ASSERT_EQ(counts_allocations, 1);
  PairOfTwo pair;
  ASSERT_TRUE(pair.pass(0));
  const Bytes plain = pattern(1440);
  const Slice slice{plain.data(), plain.size()};
  const Train train{1, plain.size(), plain.size(), {&slice, 1}};
  Bytes out(Associations::sealed_bytes(train));
  const std::uint64_t before = openssl_allocations;
  for (int i = 0; i < 100; ++i) {
    pair.ends[0].seal(pair.now, train, out);
    ASSERT_FALSE(pair.ends[1].open(pair.now, 0, out).empty());
  }
  EXPECT_EQ(openssl_allocations - before, 0u);
}

TEST(AssociationsOpen, ACopyIsRefused) {
  PairOfTwo pair;
  const Bytes datagram = pair.seal(0, bytes_of("once"));
  EXPECT_EQ(pair.open(1, datagram), bytes_of("once"));
  EXPECT_TRUE(pair.open(1, datagram).empty());
  EXPECT_EQ(pair.refused(1, Refusal::replayed), 1u);
}

TEST(AssociationsOpen, WhatTheWindowHasPassedIsRefused) {
  PairOfTwo pair;
  const Bytes datagram = pair.seal(0, bytes_of("old"));
  for (std::uint64_t i = 0; i < ReplayWindow::kNumbers; ++i) (void)pair.seal(0, bytes_of("x"));
  EXPECT_TRUE(pair.pass(0));
  EXPECT_TRUE(pair.open(1, datagram).empty());
  EXPECT_EQ(pair.refused(1, Refusal::too_old), 1u);
}

TEST(AssociationsOpen, EveryFlippedBitIsRefusedAndChangesNothing) {
  PairOfTwo pair;
  for (int i = 0; i < 2; ++i) (void)pair.seal(0, bytes_of("lost"));  // no bit of 3 makes it 0
  const Bytes datagram = pair.seal(0, bytes_of("a datagram of some length"));
  for (std::size_t bit = 0; bit < 8 * datagram.size(); ++bit) {
    Bytes damaged = datagram;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_TRUE(pair.open(1, damaged).empty()) << bit;
  }
  const Counters& counters = pair.ends[1].counters();
  EXPECT_EQ(counters.opened, 0u);
  EXPECT_EQ(counters.refused_for(Refusal::replayed) + counters.refused_for(Refusal::too_old), 0u);
  EXPECT_GT(counters.refused_for(Refusal::forged), 0u);
  EXPECT_EQ(pair.open(1, datagram), bytes_of("a datagram of some length"));
}

// A forger who knows a tag must not be able to move the replay window. Otherwise later datagrams of
// the peer would count as too old.
TEST(AssociationsOpen, AForgedNumberFarAheadChangesNothing) {
  PairOfTwo pair;
  Bytes forged = pair.seal(0, bytes_of("forged"));
  for (std::size_t i = 8; i < kHeaderBytes; ++i) forged[i] = std::byte{0xFF};
  EXPECT_TRUE(pair.open(1, forged).empty());
  EXPECT_EQ(pair.refused(1, Refusal::forged), 1u);
  EXPECT_TRUE(pair.pass(0));
}

TEST(AssociationsOpen, EveryTruncationIsRefused) {
  PairOfTwo pair;
  const Bytes datagram = pair.seal(0, pattern(100));
  for (std::size_t bytes = 0; bytes < datagram.size(); ++bytes) {
    const auto end = datagram.begin() + static_cast<std::ptrdiff_t>(bytes);
    EXPECT_TRUE(pair.open(1, Bytes(datagram.begin(), end)).empty()) << bytes;
  }
  EXPECT_EQ(pair.refused(1, Refusal::truncated), kOverheadBytes + 1);
  EXPECT_EQ(pair.open(1, datagram), pattern(100));
}

TEST(AssociationsOpen, AnotherTagIsUnknown) {
  PairOfTwo pair;
  Bytes datagram = pair.seal(0, bytes_of("x"));
  datagram[4] ^= std::byte{1};
  EXPECT_TRUE(pair.open(1, datagram).empty());
  EXPECT_EQ(pair.refused(1, Refusal::unknown_tag), 1u);
}

TEST(AssociationsOpen, NobodyIsKnownAtFirst) {
  PairOfTwo pair;
  Associations stranger;
  Bytes datagram = pair.seal(0, bytes_of("x"));
  EXPECT_TRUE(stranger.open(pair.now, 0, datagram).empty());
  EXPECT_EQ(stranger.counters().refused_for(Refusal::unknown_tag), 1u);
}

TEST(AssociationsOpen, WhatIsNotSealedIsRefused) {
  PairOfTwo pair;
  EXPECT_TRUE(pair.open(1, bytes_of("LW and so on, longer than what surrounds")).empty());
  EXPECT_EQ(pair.refused(1, Refusal::form), 1u);
}

TEST(AssociationsOpen, AnotherLaneIsRefused) {
  PairOfTwo pair;
  Bytes datagram = pair.seal(0, bytes_of("x"));
  datagram[1] = std::byte{1};
  EXPECT_TRUE(pair.open(1, datagram).empty());
  EXPECT_EQ(pair.refused(1, Refusal::form), 1u);
}

// Two processes that meet in two groups at once, and complete these meetings in different orders.
class TwoMeetings : public ::testing::Test {
 protected:
  static constexpr Instant kNow{1'000'000};

  TwoMeetings() { start_over(); }
  void start_over() { ends_ = std::make_unique<std::array<Associations, 2>>(); }
  // Exchanges all messages about keys without loss.
  void change_keys() {
    for (bool any = true; any;) {
      any = false;
      for (const Rank from : {0, 1}) {
        (*ends_)[from].on_wake(kNow);
        while (const auto message = (*ends_)[from].poll_message()) {
          EXPECT_FALSE(opens(1 - from, {message->datagram.begin(), message->datagram.end()}));
          any = true;
        }
      }
    }
  }
  void meet(Rank at, unsigned meeting) {
    keys::Key name{};
    name[0] = static_cast<std::byte>(meeting);
    if ((*ends_)[at].needs_keys(1 - at, name))
      (*ends_)[at].meet(kNow, 1 - at, keys_of(meeting, at == 0), maker_, name);
  }
  Bytes sealed(Rank from) {
    const Bytes plain = bytes_of("x");
    const Slice slice{plain.data(), plain.size()};
    Bytes out(Associations::sealed_bytes({static_cast<Rank>(1 - from), 1, 1, {&slice, 1}}));
    (*ends_)[from].seal(kNow, {static_cast<Rank>(1 - from), 1, 1, {&slice, 1}}, out);
    return out;
  }
  bool opens(Rank at, Bytes datagram) {
    return !(*ends_)[at].open(kNow, static_cast<Rank>(1 - at), datagram).empty();
  }
  bool pass(Rank from) { return opens(static_cast<Rank>(1 - from), sealed(from)); }

  const CipherMaker maker_ = aead_maker(AeadKind::aes_128_gcm);
  std::unique_ptr<std::array<Associations, 2>> ends_;
};

TEST_F(TwoMeetings, EndWithOneKeyAtBothEnds) {
  for (unsigned order = 0; order < 16; ++order) {
    start_over();
    meet(0, 1 + order % 2);
    meet(0, 2 - order % 2);
    meet(1, 1 + order / 2 % 2);
    meet(1, 2 - order / 2 % 2);
    const Rank first = order / 4 % 2;
    Bytes crossing = sealed(1 - first);
    EXPECT_TRUE(pass(first)) << order;
    if (order < 8) {
      EXPECT_TRUE(opens(first, crossing)) << order;
    }
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(pass(0) && pass(1)) << order;
    EXPECT_EQ((*ends_)[0].at(1)->outbound_tag(), (*ends_)[1].at(0)->inbound_tag()) << order;
    EXPECT_EQ((*ends_)[1].at(0)->outbound_tag(), (*ends_)[0].at(1)->inbound_tag()) << order;
  }
}

TEST_F(TwoMeetings, OneThatTheOtherProcessNeverEndedDoesNotPartThem) {
  meet(0, 1);
  meet(0, 2);
  meet(1, 2);
  EXPECT_TRUE(pass(1));
  EXPECT_TRUE(pass(0));
  start_over();
  meet(0, 2);
  meet(0, 1);
  meet(1, 2);
  EXPECT_FALSE(pass(0));
  EXPECT_TRUE(pass(1));
  EXPECT_TRUE(pass(0));
}

TEST_F(TwoMeetings, ALaterOneChangesNothingOnceThePeerWasHeard) {
  meet(0, 1);
  meet(1, 1);
  EXPECT_TRUE(pass(1));
  keys::Key later{};
  EXPECT_FALSE((*ends_)[0].needs_keys(1, later));
  EXPECT_TRUE((*ends_)[1].needs_keys(0, later));
  meet(1, 2);
  EXPECT_FALSE(pass(1));
  EXPECT_TRUE(pass(0));
  EXPECT_TRUE(pass(1));
}

// Two processes have three meetings. The keys of each meeting in which the peer was heard must
// leave their first phase.
TEST_F(TwoMeetings, KeysOfEachOneThatWasHeardAreChanged) {
  for (unsigned meeting = 3; meeting >= 1; --meeting) {
    meet(0, meeting);
    meet(1, meeting);
  }
  for (int i = 0; i < 9; ++i) (void)sealed(0);
  Bytes by_first = sealed(0);  // with a number that is not used again below
  start_over();
  for (const Rank at : {0, 1}) {
    meet(at, 1 + at);
    meet(at, 2 - at);
    meet(at, 3);
  }
  EXPECT_TRUE(pass(1));
  change_keys();
  EXPECT_TRUE(pass(0) && pass(1));
  EXPECT_EQ((*ends_)[0].at(1)->sending_phase(), 1u);
  EXPECT_EQ((*ends_)[1].at(0)->sending_phase(), 1u);
  EXPECT_EQ((*ends_)[0].counters().phases, 1u);
  // Process 1 now opens a datagram of the least of the three meetings. So the keys of that meeting
  // seal from now on, after they have changed.
  EXPECT_TRUE(opens(1, std::move(by_first)));
  EXPECT_TRUE(pass(1));
  change_keys();
  EXPECT_TRUE(pass(0) && pass(1));
  EXPECT_EQ((*ends_)[0].at(1)->sending_phase(), 1u);
  EXPECT_EQ((*ends_)[0].at(1)->outbound_tag(), (*ends_)[1].at(0)->inbound_tag());
  EXPECT_EQ((*ends_)[0].counters().phases, 2u);
  EXPECT_EQ((*ends_)[1].counters().phases, 2u);
}

// However many peers there are, one wake must make only a few key exchanges, and the next wake must
// be due at once.
TEST(AssociationsWake, DoesAFewExchangesAtATime) {
  struct Counting final : KeyExchange {
    std::optional<Halves> make(const keys::Key& mixed) override {
      ++made;
      return x25519().make(mixed);
    }
    std::optional<keys::Key> agree(const keys::Key& own, const keys::Key& other) override {
      ++made;
      return x25519().agree(own, other);
    }
    int made = 0;
  };
  constexpr Rank kPeers = 50;
  constexpr Instant kNow{1};
  Counting exchange;
  Associations hub(0, {}, exchange);
  std::vector<Associations> peers(kPeers);
  const auto maker = aead_maker(AeadKind::aes_128_gcm);
  const Slice byte{reinterpret_cast<const std::byte*>("x"), 1};
  const auto to_hub = [&](Rank peer, Bytes datagram) { hub.open(kNow, peer, datagram); };
  for (Rank i = 0; i < kPeers; ++i) {
    hub.meet(kNow, i, keys_of(i, true), maker);
    peers[i].meet(kNow, 0, keys_of(i, false), maker);
    Bytes out(kOverheadBytes + 1);
    peers[i].seal(kNow, {0, 1, 1, {&byte, 1}}, out);
    to_hub(i, out);
  }
  int wakes = 0;
  while (hub.next_wake() <= kNow) {
    const int before = exchange.made;
    hub.on_wake(kNow);
    EXPECT_LE(exchange.made - before, 4);
    ++wakes;
    while (const auto message = hub.poll_message()) {
      Bytes datagram(message->datagram.begin(), message->datagram.end());
      peers[message->slot].open(kNow, 0, datagram);
      peers[message->slot].on_wake(kNow);
      while (const auto answer = peers[message->slot].poll_message())
        to_hub(message->slot, {answer->datagram.begin(), answer->datagram.end()});
    }
  }
  EXPECT_GT(wakes, 20);
  EXPECT_EQ(hub.counters().phases, kPeers);
}

TEST(AssociationsOpen, ADatagramIsForOneReceiverAlone) {
  PairOfTwo pair;
  const Bytes datagram = pair.seal(0, bytes_of("for 1"));
  EXPECT_TRUE(pair.open(0, datagram).empty());
  EXPECT_EQ(pair.refused(0, Refusal::unknown_tag), 1u);
}

TEST(AssociationsOpen, AMembersDatagramFromAnothersAddressIsRefused) {
  PairOfTwo pair;
  pair.ends[1].meet(pair.now, 7, keys_of(2, false), aead_maker(AeadKind::aes_128_gcm));
  Bytes datagram = pair.seal(0, bytes_of("x"));
  const Bytes kept = datagram;
  EXPECT_TRUE(pair.ends[1].open(pair.now, 7, datagram).empty());
  EXPECT_EQ(pair.refused(1, Refusal::wrong_address), 1u);
  EXPECT_EQ(pair.open(1, kept), bytes_of("x"));
}

TEST(AssociationsOpen, ManyPeersAreToldApartEvenWhereTagsAreEqual) {
  constexpr Rank kPeers = 200;
  Associations hub;
  std::vector<Associations> peers(kPeers);
  for (Rank i = 0; i < kPeers; ++i) {
    PairKeys here = keys_of(i, true);
    PairKeys there = keys_of(i, false);
    here.inbound_tag = there.outbound_tag = 0x11110000 + i % 50;
    hub.meet(Instant{0}, i, here, aead_maker(AeadKind::aes_128_gcm));
    peers[i].meet(Instant{0}, 0, there, aead_maker(AeadKind::aes_128_gcm));
  }
  for (Rank i = 0; i < kPeers; ++i) {
    const Bytes plain = pattern(20, i + 1);
    const Slice slice{plain.data(), plain.size()};
    const Train train{0, plain.size(), plain.size(), {&slice, 1}};
    Bytes out(Associations::sealed_bytes(train));
    peers[i].seal(Instant{0}, train, out);
    const ByteSpan opened = hub.open(Instant{0}, i, out);
    EXPECT_EQ(Bytes(opened.begin(), opened.end()), plain) << i;
  }
}

}  // namespace
}  // namespace leeway::seal
