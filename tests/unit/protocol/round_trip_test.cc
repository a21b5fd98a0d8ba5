#include <gtest/gtest.h>

#include "protocol/link.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

constexpr Instant kSent{0};

TEST(RoundTripSample, TheFirstReplacesTheGuess) {
  RoundTrip rtt(10ms);
  EXPECT_FALSE(rtt.measured());
  EXPECT_EQ(rtt.smoothed(), 10ms);
  rtt.on_sample(kSent, 200us);
  EXPECT_TRUE(rtt.measured());
  EXPECT_EQ(rtt.smoothed(), 200us);
}

TEST(RoundTripSample, FollowsRfc6298) {
  RoundTrip rtt(10ms);
  double smoothed = 1e6, variation = 5e5;
  rtt.on_sample(kSent, 1ms);
  for (const double sample : {2e6, 1.5e6, 4e6, 1e6, 1e6}) {
    rtt.on_sample(kSent, Duration(static_cast<std::int64_t>(sample)));
    variation += (std::abs(smoothed - sample) - variation) / 4;
    smoothed += (sample - smoothed) / 8;
    EXPECT_NEAR(static_cast<double>(rtt.smoothed().count()), smoothed, 5.0);
    const double timeout = smoothed + std::max(4 * variation, static_cast<double>(limits::kTickNs));
    EXPECT_NEAR(static_cast<double>(rtt.timeout().count()), timeout, 25.0);
  }
}

TEST(RoundTripTimeout, DoublesWithEveryTryUpToSixtyFourTimes) {
  RoundTrip rtt(10ms);
  rtt.on_sample(kSent, 1ms);
  for (std::uint32_t tries = 0; tries <= 6; ++tries)
    EXPECT_EQ(rtt.timeout(tries), rtt.timeout() * (1 << tries));
  EXPECT_EQ(rtt.timeout(1000), rtt.timeout() * 64);
}

TEST(RoundTripTimeout, IsNotDoubledBeyondASecondUnlessOneAnswerTakesThatLong) {
  RoundTrip middling(10ms);
  middling.on_sample(kSent, 10ms);
  EXPECT_EQ(middling.timeout(5), 960ms);
  EXPECT_EQ(middling.timeout(6), 1s);
  RoundTrip distant(10ms);
  distant.on_sample(kSent, 500ms);
  EXPECT_EQ(distant.timeout(), 1500ms);
  EXPECT_EQ(distant.timeout(5), 3s);
}

TEST(RoundTripSample, NonsenseOfAPeerDoesNotMakeTimeRunBackwards) {
  RoundTrip rtt(10ms);
  rtt.on_sample(kSent, -5s);  // a peer that claims to have waited longer than the round took
  EXPECT_GT(rtt.smoothed(), 0ns);
  EXPECT_GE(rtt.timeout(), Duration(limits::kTickNs));
}

TEST(RoundTripSample, FarAboveAllBeforeIsBelievedWhenALaterOneConfirmsIt) {
  RoundTrip rtt(10ms);
  rtt.on_sample(kSent, 1ms);
  const Duration timeout = rtt.timeout();
  rtt.on_sample(kSent + 1s, 5s);
  rtt.on_sample(kSent + 2s, 4s);
  EXPECT_EQ(rtt.smoothed(), 1ms) << "somebody stood still until the sixth second";
  EXPECT_EQ(rtt.timeout(), timeout);
  rtt.on_sample(kSent + 6s, 1ms);
  rtt.on_sample(kSent + 7s, 5s);
  EXPECT_EQ(rtt.smoothed(), 1ms) << "and again";
  rtt.on_sample(kSent + 12s, 5s);
  EXPECT_GT(rtt.smoothed(), 600ms) << "the path is longer now";
}

TEST(RoundTripSample, OfALongPathNeedsNoOther) {
  RoundTrip first(10ms);
  first.on_sample(kSent, 600ms);
  EXPECT_EQ(first.smoothed(), 600ms);
  RoundTrip queue(10ms);
  queue.on_sample(kSent, 20ms);
  queue.on_sample(kSent, 150ms);
  EXPECT_GT(queue.smoothed(), 30ms) << "a queue of 130 ms has filled";
}

TEST(ArrivalGapMean, IsTheSmoothedTimeBetweenArrivals) {
  ArrivalGap gap;
  for (int i = 1; i <= 400; ++i) gap.on_arrival(Instant{i * 1000});
  EXPECT_NEAR(static_cast<double>(gap.mean().count()), 1000.0, 16.0);
  const Duration before = gap.mean();
  gap.pause_until(Instant{999'999'000});
  gap.on_arrival(Instant{1'000'000'000});
  EXPECT_EQ(gap.mean(), before) << "a pause is not a gap";
  gap.pause_until(Instant{999'999'000});
  gap.on_arrival(Instant{1'000'100'000});
  EXPECT_GT(gap.mean(), before) << "the pause was over";
}

}  // namespace
}  // namespace leeway::protocol
