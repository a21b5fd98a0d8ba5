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

TEST(AssociationRotation, ThePhaseChangesAfterSoManyDatagramsOfBothDirections) {
  PairOfTwo pair(kQuick);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(pair.pass(0) && pair.pass(1));
  EXPECT_EQ(pair.end(0).sending_phase(), 0u);
  EXPECT_TRUE(pair.pass(0));
  EXPECT_EQ(pair.end(0).sending_phase(), 1u);
  EXPECT_EQ(pair.end(1).receiving_phase(), 1u);
  EXPECT_EQ(pair.end(1).sending_phase(), 1u);
}

TEST(AssociationRotation, ThePhaseChangesAfterSomeTime) {
  PairOfTwo pair;
  EXPECT_TRUE(pair.pass(0) && pair.pass(1));
  pair.now = pair.now + 119s;
  EXPECT_TRUE(pair.pass(0));
  EXPECT_EQ(pair.end(0).sending_phase(), 0u);
  pair.now = pair.now + 1s;
  EXPECT_TRUE(pair.pass(0));
  EXPECT_EQ(pair.end(0).sending_phase(), 1u);
}

TEST(AssociationRotation, ManyPhasesOneAfterAnother) {
  PairOfTwo pair(kQuick);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pair.pass(0) && pair.pass(1)) << i;
  EXPECT_GT(pair.end(0).sending_phase(), 150u);
  EXPECT_EQ(pair.end(0).sending_phase(), pair.end(1).sending_phase());
}

// Who leads hears nothing, and must not go on to a phase whose key the peer cannot have.
TEST(AssociationRotation, WhoLeadsWaitsUntilThePeerHasFollowed) {
  PairOfTwo pair(kQuick);
  for (int i = 0; i < 100; ++i) (void)pair.seal(0, bytes_of("lost"));
  EXPECT_EQ(pair.end(0).sending_phase(), 1u);
  pair.now = pair.now + 1000s;
  EXPECT_TRUE(pair.pass(0));
  EXPECT_EQ(pair.end(0).sending_phase(), 1u);
  EXPECT_TRUE(pair.pass(1));
  EXPECT_TRUE(pair.pass(0));
  EXPECT_EQ(pair.end(0).sending_phase(), 2u);
}

TEST(AssociationRotation, WhoFollowsNeverBegins) {
  PairOfTwo pair(kQuick);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(pair.pass(1));
  pair.now = pair.now + 1000s;
  EXPECT_TRUE(pair.pass(1));
  EXPECT_EQ(pair.end(1).sending_phase(), 0u);
}

TEST(AssociationRotation, OvertakenDatagramsOfTheOldPhaseAreOpenedForAWhile) {
  PairOfTwo pair(kQuick);
  const Bytes early = pair.seal(0, bytes_of("early"));
  const Bytes late = pair.seal(0, bytes_of("late"));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pair.pass(0));
  ASSERT_EQ(pair.end(1).receiving_phase(), 1u);
  EXPECT_EQ(pair.open(1, early), bytes_of("early"));
  pair.now = pair.now + 3s;
  EXPECT_TRUE(pair.open(1, late).empty());
  EXPECT_EQ(pair.refused(1, Refusal::phase), 1u);
}

TEST(AssociationRotation, AForgedPhaseChangesNothing) {
  PairOfTwo pair(kQuick);
  for (unsigned form = 0x40; form < 0x44; ++form) {
    Bytes forged = pair.seal(0, bytes_of("forged"));
    forged[0] = static_cast<std::byte>(form);
    if (form == 0x40) continue;
    EXPECT_TRUE(pair.open(1, forged).empty());
  }
  EXPECT_EQ(pair.end(1).receiving_phase(), 0u);
  EXPECT_EQ(pair.end(1).sending_phase(), 0u);
  EXPECT_TRUE(pair.pass(0));
}

// A line that loses, repeats and reorders: whatever arrives once is opened, nothing is opened
// twice, and the two stay together.
TEST(AssociationRotation, LossReorderingAndCopiesHurtNothing) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    PairOfTwo pair({.datagrams = 200});
    std::mt19937 dice(seed);
    std::array<std::deque<Bytes>, 2> lines;
    std::set<Bytes> opened;
    std::uint64_t delivered = 0;
    for (unsigned i = 0; i < 2000; ++i) {
      pair.now = pair.now + 1ms;
      const Rank from = dice() % 2;
      auto& line = lines[from];
      Bytes plain = bytes_of("message " + std::to_string(i));
      if (dice() % 4 != 0) line.push_back(pair.seal(from, plain));
      if (line.size() < 5) continue;
      const std::size_t at = dice() % line.size();
      const Bytes datagram = line[at];
      line.erase(line.begin() + static_cast<std::ptrdiff_t>(at));
      if (dice() % 5 == 0) continue;
      const Bytes out = pair.open(1 - from, datagram);
      ASSERT_FALSE(out.empty()) << "seed " << seed << ", step " << i;
      ASSERT_TRUE(opened.insert(out).second);
      ++delivered;
      ASSERT_TRUE(pair.open(1 - from, datagram).empty());
      const auto gap =
          static_cast<std::int64_t>(pair.end(0).sending_phase() - pair.end(1).sending_phase());
      ASSERT_TRUE(gap == 0 || gap == 1);
    }
    EXPECT_GT(pair.end(0).sending_phase(), 5u);
    EXPECT_EQ(pair.refused(0, Refusal::replayed) + pair.refused(1, Refusal::replayed), delivered);
  }
}

// The same key never sees the same nonce: numbers go on over phases, and directions have keys of
// their own.
TEST(AssociationNonces, NoNumberIsUsedTwice) {
  PairOfTwo pair(kQuick);
  std::array<std::set<std::uint64_t>, 2> numbers;
  for (int i = 0; i < 500; ++i) {
    for (const Rank from : {0, 1}) {
      const Bytes datagram = pair.seal(from, bytes_of("same"));
      Refusal refusal{};
      ASSERT_TRUE(numbers[from].insert(decode_header(datagram, refusal)->counter).second);
      ASSERT_FALSE(pair.open(1 - from, datagram).empty());
    }
  }
  EXPECT_EQ(*numbers[0].rbegin(), 500u);
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
