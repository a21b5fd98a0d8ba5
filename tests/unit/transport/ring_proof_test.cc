#include "transport/mixed/ring_proof.h"

#include <gtest/gtest.h>

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;
using enum RingProof::Standing;

constexpr Instant kStart{1'000'000'000};

TEST(RingProofEcho, IsOwedToANonceThatABellNamesAndTheRingHolds) {
  RingProof proof(kStart, 1);
  proof.on_bell(77);
  EXPECT_EQ(proof.echo_due(), std::nullopt) << "nothing was found in the ring";
  proof.on_challenge(78);
  EXPECT_EQ(proof.echo_due(), std::nullopt) << "who writes the ring is not who rings";
  proof.on_challenge(77);
  EXPECT_EQ(proof.echo_due(), 77u);
  proof.on_echoed();
  EXPECT_EQ(proof.echo_due(), std::nullopt) << "once";
}

TEST(RingProofEcho, IsOwedWithoutABellToNobody) {
  RingProof proof(kStart, 1);
  proof.on_challenge(77);
  EXPECT_EQ(proof.echo_due(), std::nullopt) << "the peer's UDP may not lead here";
  proof.on_bell(77);
  EXPECT_EQ(proof.echo_due(), 77u);
}

TEST(RingProofStanding, OnlyItsOwnNonceProves) {
  RingProof proof(kStart, 5);
  proof.on_echo(6);
  EXPECT_EQ(proof.standing(), open);
  proof.on_echo(5);
  EXPECT_EQ(proof.standing(), proven);
}

TEST(RingProofStanding, ARefusalIsFinalAndComesNotAfterAProof) {
  RingProof refused(kStart, 5);
  refused.refuse();
  refused.on_echo(5);
  EXPECT_EQ(refused.standing(), RingProof::Standing::refused);
  RingProof proof(kStart, 5);
  proof.on_echo(5);
  proof.refuse();
  EXPECT_EQ(proof.standing(), proven);
}

TEST(RingProofBells, AreRungLessAndLessOftenUntilPatienceEnds) {
  RingProof proof(kStart, 5);
  Instant now = kStart;
  int rung = 0;
  Duration longest{0};
  while (proof.standing() == open) {
    if (proof.poll_bell(now)) ++rung;
    if (proof.standing() != open) break;
    longest = std::max<Duration>(longest, proof.next_wake() - now);
    now = proof.next_wake();
  }
  EXPECT_EQ(proof.standing(), RingProof::Standing::refused);
  EXPECT_GE(now - kStart, RingProof::kPatience);
  EXPECT_EQ(longest, Duration(RingProof::kEveryMax));
  EXPECT_LT(rung, 80);
  EXPECT_FALSE(proof.poll_bell(now + 1s));
  EXPECT_EQ(proof.next_wake(), Instant::infinite_future());
}

TEST(RingProofBells, StopWhenItIsProven) {
  RingProof proof(kStart, 5);
  EXPECT_TRUE(proof.poll_bell(kStart));
  EXPECT_FALSE(proof.poll_bell(kStart));
  proof.on_echo(5);
  EXPECT_FALSE(proof.poll_bell(kStart + 1s));
}

}  // namespace
}  // namespace leeway::transport
