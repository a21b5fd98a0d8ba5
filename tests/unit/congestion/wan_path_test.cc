#include "congestion/wan_path.h"

#include <gtest/gtest.h>

namespace leeway::congestion {
namespace {

using namespace std::chrono_literals;

// Returns a path with a round trip of 64 ms, after one sample.
WanPath path_with(Duration queue, Duration jitter = 0ms) {
  WanPath path;
  path.on_sample({.now = Instant{1'000'000'000},
                  .rtt = 64ms + queue,
                  .rtt_min = 64ms,
                  .queueing = queue,
                  .jitter = jitter});
  return path;
}

TEST(WanPath, ALargerWindowHasALowerTarget) {
  const WanPath path = path_with(0ms);
  const double of_one = path.packet_rate();
  EXPECT_DOUBLE_EQ(of_one, 1500 * 8 / 64e-3);
  EXPECT_EQ(path.target(4 * of_one), 4ms) << "a sixteenth of the round trip";
  EXPECT_EQ(path.target(25 * of_one), 3ms) << "15 ms over the root of 25";
  EXPECT_EQ(path.target(10'000 * of_one), 1ms);
}

TEST(WanPath, AFewPacketsAreAlwaysInFlight) {
  const WanPath path = path_with(0ms);
  EXPECT_EQ(path.packets(0), WanPath::kPacketsMin);
  EXPECT_DOUBLE_EQ(path.packets(100 * path.packet_rate()), 100);
}

TEST(WanPath, TheTargetIsHalfOfTheQueueThatOverflowed) {
  WanPath path = path_with(5ms);
  const double rate = 25 * path.packet_rate();
  const Duration before = path.target(rate);
  EXPECT_GT(before, 2500us);
  path.on_overflow();
  EXPECT_EQ(path.target(rate), 2500us);
  path.forget_overflow();
  EXPECT_EQ(path.target(rate), before);
}

TEST(WanPath, TheTargetIsLongerThanDelaysVaryByThemselves) {
  WanPath path = path_with(5ms, 2ms);
  const double rate = 25 * path.packet_rate();
  EXPECT_EQ(path.target(rate), 12ms);
  path.on_overflow();
  EXPECT_EQ(path.target(rate), 8ms);
}

TEST(WanPath, ForgetsTheLongestQueueAndRateAfterSixSeconds) {
  WanPath path = path_with(5ms);
  path.on_carried(7e6);
  Instant now{1'000'000'000};
  const auto pass = [&](Duration time) {
    path.on_sample({.now = now += time, .rtt = 64ms, .rtt_min = 64ms, .queueing = 1ms});
  };
  pass(3s);
  EXPECT_EQ(path.longest_queue(), 5e6);
  EXPECT_EQ(path.carried(), 7e6);
  pass(3s);
  EXPECT_EQ(path.longest_queue(), 1e6);
  EXPECT_EQ(path.carried(), 0);
}

}  // namespace
}  // namespace leeway::congestion
