#include "seal/association.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>

#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

constexpr Rotation kQuick{.datagrams = 10, .time = 120s, .old_phase = 3s};

constexpr auto kAes = AeadKind::aes_128_gcm;

TEST(AssociationRotation, PhaseZeroIsOverAsSoonAsTheLeaderHasHeardThePeer) {
  PairOfTwo pair;
  EXPECT_TRUE(pair.pass(0));
  pair.change_keys();
  EXPECT_EQ(pair.end(0).sending_phase(), 0u);
  EXPECT_TRUE(pair.pass(1));
  pair.change_keys();
  for (const Rank end : {0, 1}) {
    EXPECT_EQ(pair.end(end).sending_phase(), 1u);
    EXPECT_EQ(pair.end(end).receiving_phase(), 1u);
    EXPECT_EQ(pair.ends[end].counters().phases, 1u);
  }
  EXPECT_TRUE(pair.pass(0) && pair.pass(1));
}

// Two processes that have reached phase 1.
struct MetPair : PairOfTwo {
  using PairOfTwo::PairOfTwo;
  MetPair() { meet(); }
  explicit MetPair(const Rotation& rotation) : PairOfTwo(rotation) { meet(); }
  void meet() {
    EXPECT_TRUE(pass(1));
    change_keys();
    EXPECT_EQ(end(1).sending_phase(), 1u);
  }
};

TEST(AssociationRotation, ThePhaseChangesAfterSoManyDatagramsOfBothDirections) {
  MetPair pair(kQuick);
  for (int i = 0; i < 5; ++i) {
    pair.change_keys();
    EXPECT_EQ(pair.end(0).sending_phase(), 1u);
    EXPECT_TRUE(pair.pass(0) && pair.pass(1));
  }
  EXPECT_TRUE(pair.pass(0));
  pair.change_keys();
  EXPECT_EQ(pair.end(0).sending_phase(), 2u);
  EXPECT_EQ(pair.end(1).sending_phase(), 2u);
}

// Messages about keys do not count as use of the keys. So two ends that are otherwise silent must
// stay in the phase.
TEST(AssociationRotation, ThePhaseChangesAfterSomeTimeIfAnythingWasSaid) {
  for (const Rank from : {0, 1}) {
    MetPair pair;
    for (int i = 0; i < 10; ++i) pair.pass_time(120s);
    EXPECT_EQ(pair.end(0).sending_phase(), 1u);
    EXPECT_TRUE(pair.pass(from));
    pair.pass_time(119s);
    EXPECT_EQ(pair.end(0).sending_phase(), 1u);
    pair.pass_time(1s);
    EXPECT_EQ(pair.end(0).sending_phase(), 2u);
    EXPECT_EQ(pair.end(1).sending_phase(), 2u);
    for (int i = 0; i < 10; ++i) pair.pass_time(120s);
    EXPECT_EQ(pair.end(0).sending_phase(), 2u);
  }
}

TEST(AssociationRotation, ItIsKnownWhenTheNextThingIsDue) {
  MetPair pair;
  pair.pass_time(1s);
  EXPECT_EQ(pair.ends[0].next_wake(), pair.now + 2s);  // when the previous phase is erased
  pair.pass_time(2s);
  EXPECT_EQ(pair.ends[0].next_wake(), pair.now + 117s);
  EXPECT_EQ(pair.ends[1].next_wake(), Instant::infinite_future());
}

TEST(AssociationRotation, ManyPhasesOneAfterAnother) {
  MetPair pair(kQuick);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(pair.pass(0) && pair.pass(1)) << i;
    pair.change_keys();
  }
  EXPECT_GT(pair.end(0).sending_phase(), 150u);
  EXPECT_EQ(pair.end(0).sending_phase(), pair.end(1).sending_phase());
}

// Until the peer has accepted an offer, it cannot have the next keys. So the leading end must not
// seal with them yet.
TEST(AssociationRotation, WhoLeadsWaitsUntilThePeerHasAccepted) {
  MetPair pair(kQuick);
  for (int i = 0; i < 100; ++i) (void)pair.seal(0, bytes_of("lost"));
  EXPECT_EQ(pair.messages(0).size(), 1u);
  EXPECT_EQ(pair.end(0).sending_phase(), 1u);
  EXPECT_TRUE(pair.pass(0) && pair.pass(1));
  pair.pass_time(1000s);
  EXPECT_EQ(pair.end(0).sending_phase(), 2u);
  EXPECT_TRUE(pair.pass(0) && pair.pass(1));
}

// The next phase must not begin before the leading end has heard the peer in this phase.
TEST(AssociationRotation, WhoLeadsWaitsUntilThePeerHasFollowed) {
  MetPair pair(kQuick);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pair.pass(0));
  for (const Bytes& offer : pair.messages(0)) (void)pair.open(1, offer);
  for (const Bytes& accept : pair.messages(1)) (void)pair.open(0, accept);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pair.messages(0).size(), 1u);  // asks
    EXPECT_EQ(pair.end(0).sending_phase(), 2u);
    (void)pair.seal(0, bytes_of("lost"));
    pair.now = pair.now + 20s;
  }
  EXPECT_EQ(pair.end(1).sending_phase(), 1u);
  EXPECT_TRUE(pair.pass(1));
  EXPECT_TRUE(pair.pass(0));
  EXPECT_TRUE(pair.pass(1));
  pair.change_keys();
  EXPECT_EQ(pair.end(0).sending_phase(), 3u);
  EXPECT_EQ(pair.end(1).sending_phase(), 3u);
}

// The pauses between offers are 20 ms, 40 ms, ... up to a second, and 15 s once the peer was silent
// for a minute.
TEST(AssociationRotation, AnOfferIsRepeatedAtGrowingIntervals) {
  PairOfTwo pair;
  EXPECT_TRUE(pair.pass(1));
  std::vector<Duration> pauses;
  for (int i = 0; i < 62; ++i) {
    EXPECT_EQ(pair.messages(0).size(), 1u);
    pauses.push_back(pair.ends[0].next_wake() - pair.now);
    pair.now = pair.ends[0].next_wake();
  }
  EXPECT_EQ(pauses[0], Duration(20ms));
  EXPECT_EQ(pauses[1], Duration(40ms));
  EXPECT_EQ(pauses[6], Duration(1s));
  EXPECT_EQ(pauses[59], Duration(1s));
  EXPECT_EQ(pauses[61], Duration(15s));
}

TEST(AssociationRotation, WhoFollowsNeverBegins) {
  MetPair pair(kQuick);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(pair.pass(1));
  pair.now = pair.now + 1000s;
  EXPECT_TRUE(pair.messages(1).empty());
  EXPECT_EQ(pair.end(1).sending_phase(), 1u);
}

TEST(AssociationRotation, OvertakenDatagramsOfTheOldPhaseAreOpenedForAWhile) {
  MetPair pair(kQuick);
  const Bytes early = pair.seal(0, bytes_of("early"));
  const Bytes late = pair.seal(0, bytes_of("late"));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pair.pass(0));
  pair.change_keys();
  ASSERT_EQ(pair.end(1).receiving_phase(), 2u);
  pair.pass_time(2999ms);
  EXPECT_EQ(pair.open(1, early), bytes_of("early"));
  pair.pass_time(1ms);
  EXPECT_TRUE(pair.open(1, late).empty());
  EXPECT_EQ(pair.refused(1, Refusal::phase), 1u);
}

TEST(AssociationRotation, AForgedPhaseChangesNothing) {
  MetPair pair(kQuick);
  for (unsigned form = 0x50; form < 0x54; ++form) {
    Bytes forged = pair.seal(0, bytes_of("forged"));
    forged[0] = static_cast<std::byte>(form);
    if (form == 0x51) continue;
    EXPECT_TRUE(pair.open(1, forged).empty());
  }
  EXPECT_EQ(pair.end(1).receiving_phase(), 1u);
  EXPECT_EQ(pair.end(1).sending_phase(), 1u);
  EXPECT_TRUE(pair.pass(0));
}

// A public half of zeros is no key. It must be refused without effect, and the peer must be asked
// again.
TEST(AssociationRotation, AHalfThatIsNoneChangesNothing) {
  struct : KeyExchange {
    std::optional<Halves> make(const keys::Key& mixed) override {
      auto halves = x25519().make(mixed);
      halves->public_half = {};
      return halves;
    }
    std::optional<keys::Key> agree(const keys::Key& own, const keys::Key& other) override {
      return x25519().agree(own, other);
    }
  } zeros;
  PairOfTwo pair({}, aead_maker(kAes), zeros);
  EXPECT_TRUE(pair.pass(1));
  for (int i = 0; i < 5; ++i) pair.pass_time(1s);
  EXPECT_EQ(pair.end(0).sending_phase() + pair.end(1).sending_phase(), 0u);
  EXPECT_TRUE(pair.pass(0) && pair.pass(1));
}

// The network loses, repeats and reorders datagrams. Each datagram that arrives must be opened
// exactly once, and both ends must stay in step.
TEST(AssociationRotation, LossReorderingAndCopiesHurtNothing) {
  std::uint64_t phases = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    PairOfTwo pair({.datagrams = 100});
    std::mt19937 dice(seed);
    struct Sent {
      Bytes datagram;
      bool is_message = false;
    };
    std::array<std::deque<Sent>, 2> lines;
    std::set<Bytes> opened;
    std::uint64_t delivered = 0;
    for (unsigned i = 0; i < 2000; ++i) {
      pair.now = pair.now + 1ms;
      const Rank from = dice() % 2;
      auto& line = lines[from];
      Bytes plain = bytes_of("message " + std::to_string(i));
      if (dice() % 4 != 0) line.push_back({pair.seal(from, plain), false});
      for (Bytes& message : pair.messages(from)) line.push_back({std::move(message), true});
      if (line.size() < 5) continue;
      const std::size_t at = dice() % line.size();
      const auto [datagram, is_message] = line[at];
      line.erase(line.begin() + static_cast<std::ptrdiff_t>(at));
      if (dice() % 5 == 0) continue;
      const Bytes out = pair.open(1 - from, datagram);
      ASSERT_EQ(out.empty(), is_message) << "seed " << seed << ", step " << i;
      ASSERT_TRUE(is_message || opened.insert(out).second);
      ++delivered;
      ASSERT_TRUE(pair.open(1 - from, datagram).empty());
      const auto gap =
          static_cast<std::int64_t>(pair.end(0).sending_phase() - pair.end(1).sending_phase());
      ASSERT_TRUE(gap == 0 || gap == 1);
    }
    phases += pair.end(0).sending_phase();
    EXPECT_EQ(pair.refused(0, Refusal::replayed) + pair.refused(1, Refusal::replayed), delivered);
  }
  EXPECT_GT(phases, 100u);
}

// A key must never see the same nonce twice, so numbers continue over phases, and each direction
// has its own keys.
TEST(AssociationNonces, NoNumberIsUsedTwice) {
  MetPair pair(kQuick);
  std::array<std::set<std::uint64_t>, 2> numbers;
  for (int i = 0; i < 500; ++i) {
    pair.change_keys();
    for (const Rank from : {0, 1}) {
      const Bytes datagram = pair.seal(from, bytes_of("same"));
      ASSERT_TRUE(numbers[from].insert(number_of(datagram)).second);
      ASSERT_FALSE(pair.open(1 - from, datagram).empty());
    }
  }
  EXPECT_GT(pair.end(0).sending_phase(), 80u);
  EXPECT_EQ(numbers[0].size() + numbers[1].size(), 1000u);
}

TEST(AssociationNonces, EqualPlainTextsOfBothDirectionsLookDifferent) {
  PairOfTwo pair;
  const Bytes there = pair.seal(0, bytes_of("same words"));
  const Bytes back = pair.seal(1, bytes_of("same words"));
  EXPECT_NE(Bytes(there.begin() + kHeaderBytes, there.end()),
            Bytes(back.begin() + kHeaderBytes, back.end()));
}

}  // namespace
}  // namespace leeway::seal
