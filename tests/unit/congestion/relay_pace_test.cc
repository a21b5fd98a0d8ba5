#include "congestion/relay_pace.h"

#include <gtest/gtest.h>

namespace leeway::congestion {
namespace {

using namespace std::chrono_literals;

// Returns the bytes that leave within `time` if each train of 3,000 bytes goes as soon as it may.
std::uint64_t sent_within(RelayPace& pace, Instant& now, Duration time) {
  std::uint64_t sent = 0;
  for (const Instant end = now + time; now < end; now += 100us) {
    while (pace.opens_at() <= now) {
      pace.on_sent(now, 3000);
      sent += 3000;
      if (sent > 100'000'000) return sent;
    }
  }
  return sent;
}

TEST(RelayPace, NothingIsLimitedBeforeTheRelayHasSpoken) {
  RelayPace pace;
  Instant now{1'000'000'000};
  EXPECT_GT(sent_within(pace, now, 1s), 100'000'000u);
}

TEST(RelayPace, SoMuchGoesThroughTheRelayAsItPassesOn) {
  RelayPace pace;
  Instant now{1'000'000'000};
  pace.limit(now, 1'000'000);
  EXPECT_NEAR(static_cast<double>(sent_within(pace, now, 2s)), 2e6, 10'000);
  pace.limit(now, 2'000'000);
  EXPECT_NEAR(static_cast<double>(sent_within(pace, now, 2s)), 4e6, 10'000);
}

TEST(RelayPace, AnIdleSecondIsNotMadeUpFor) {
  RelayPace pace;
  Instant now{1'000'000'000};
  pace.limit(now, 1'000'000);
  now += 1s;
  EXPECT_LE(sent_within(pace, now, 10ms), 1'000'000 * 0.015 + 3000);
}

TEST(RelayPace, ARelayThatSaysNothingMoreLimitsNoMore) {
  RelayPace pace;
  Instant now{1'000'000'000};
  pace.limit(now, 100);
  pace.on_sent(now, 1'000'000);
  EXPECT_EQ(pace.opens_at(), now + RelayPace::kRemembered);
  now += RelayPace::kRemembered;
  EXPECT_GT(sent_within(pace, now, 1s), 100'000'000u);
}

}  // namespace
}  // namespace leeway::congestion
