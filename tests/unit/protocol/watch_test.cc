#include "protocol/watch.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using Verdict = Watch::Look::Verdict;

constexpr Instant kStart{1'000'000'000};
constexpr Duration kPeerTimeout = 3s;

class Watched : public ::testing::Test {
 protected:
  Watch::Look look(Instant now, Instant heard_at, bool expected = true) {
    return watch_.look(now, heard_at, expected, rtt_, kPeerTimeout);
  }
  // Calls look() whenever it is due, and never hears the peer. Returns when the peer counts as
  // dead.
  Instant dies_at(Instant now) {
    for (int i = 0; i < 100; ++i) {
      const Watch::Look seen = look(now, Instant{0});
      if (seen.verdict == Verdict::dead) return now;
      probes_ += seen.verdict == Verdict::probe;
      now = seen.again_at;
    }
    return Instant::infinite_future();
  }

  Watch watch_;
  RoundTrip rtt_{1ms};
  int probes_ = 0;
};

TEST_F(Watched, IsDeadAfterThePeerTimeoutWithoutAnyAnswer) {
  const Instant first = watch_.start(kStart, rtt_, kPeerTimeout);
  EXPECT_EQ(first, kStart + 500ms);
  EXPECT_EQ(dies_at(first), kStart + kPeerTimeout);
  EXPECT_GE(probes_, 24);
  EXPECT_LE(probes_, 25);
}

TEST_F(Watched, AnySignOfLifeBeginsTheSilenceAnew) {
  watch_.start(kStart, rtt_, kPeerTimeout);
  const Watch::Look seen = look(kStart + 500ms, kStart + 400ms);
  EXPECT_EQ(seen.verdict, Verdict::lives);
  EXPECT_EQ(seen.again_at, kStart + 900ms);
  EXPECT_EQ(dies_at(seen.again_at), kStart + 400ms + kPeerTimeout);
}

TEST_F(Watched, IsNoLongerOnceItSpokeAndNothingIsExpected) {
  watch_.start(kStart, rtt_, kPeerTimeout);
  EXPECT_EQ(look(kStart + 500ms, kStart + 1ms, false).again_at, Instant::infinite_future());
  EXPECT_FALSE(watch_.on());
}

TEST_F(Watched, IsWatchedOnWhenASilentPeerIsNoLongerWaitedFor) {
  watch_.start(kStart, rtt_, kPeerTimeout);
  watch_.keep();
  EXPECT_EQ(look(kStart + 500ms, Instant{0}, false).verdict, Verdict::probe);
  EXPECT_TRUE(watch_.on());
}

TEST_F(Watched, WakingForOtherThingsProbesNoSooner) {
  watch_.start(kStart, rtt_, kPeerTimeout);
  const Instant again = look(kStart + 500ms, Instant{0}).again_at;
  for (Instant at = kStart + 501ms; at < again; at += 10ms)
    EXPECT_EQ(look(at, Instant{0}).verdict, Verdict::lives);
}

TEST_F(Watched, AProcessThatWasStoppedItselfProbesBeforeItJudges) {
  watch_.start(kStart, rtt_, kPeerTimeout);
  const Instant back = kStart + 60s;
  const Instant dead_at = dies_at(back);
  EXPECT_GT(dead_at, back + 1s);
  EXPECT_GE(probes_, 12);
}

TEST_F(Watched, OfALongPathIsSuspectLater) {
  RoundTrip slow(100ms);
  const Duration timeout = slow.timeout();
  EXPECT_GT(8 * timeout, kPeerTimeout / 2);
  EXPECT_LT(8 * timeout, kPeerTimeout);
  EXPECT_EQ(watch_.start(kStart, slow, kPeerTimeout), kStart + 4 * timeout);
}

TEST_F(Watched, HasEightTimeoutsHoweverShortThePeerTimeoutIs) {
  rtt_ = RoundTrip(100ms);
  Instant now = watch_.start(kStart, rtt_, 100ms);
  for (int i = 0; i < 100; ++i) {
    const Watch::Look seen = watch_.look(now, Instant{0}, true, rtt_, 100ms);
    if (seen.verdict == Verdict::dead) break;
    now = seen.again_at;
  }
  EXPECT_EQ(now, kStart + 8 * rtt_.timeout());
}

}  // namespace
}  // namespace leeway::protocol
