#include "congestion/wan_startup.h"

#include <gtest/gtest.h>

namespace leeway::congestion {
namespace {

using namespace std::chrono_literals;

// Feeds a startup with one sample per round trip of 20 ms.
class WanStartupTest : public ::testing::Test {
 protected:
  void round_trip(double rate, WanRound round = {}, Duration queue = 0ms) {
    const auto bytes = static_cast<std::uint64_t>(rate * 20e-3 / 8);
    now_ += 20ms;
    const Sample sample{.now = now_,
                        .rtt = 20ms + queue,
                        .rtt_min = 20ms,
                        .queueing = queue,
                        .interval = 20ms,
                        .delivered_bytes = bytes,
                        .newly_delivered_bytes = bytes};
    round.add(sample, true);
    path_.on_sample(sample);
    startup_.on_sample(sample, round, path_);
    startup_.on_round(round, path_, losses_);
  }
  static WanRound lossy(double covered, double lost) { return {.loss = {covered, lost}}; }

  Instant now_{1'000'000'000};
  WanPath path_;
  WanLosses losses_;
  WanStartup startup_;
};

TEST_F(WanStartupTest, GoesOnWhileTheRateGrows) {
  for (double rate = 1e6; rate < 1e9; rate *= 2) round_trip(rate, lossy(100, 0));
  EXPECT_FALSE(startup_.over());
  EXPECT_GT(startup_.rate(), 5e8);
  EXPECT_GT(startup_.gain(), 2);
}

TEST_F(WanStartupTest, EndsAfterThreeRoundTripsWithoutGrowth) {
  round_trip(20e6, lossy(100, 0));
  for (int i = 0; i < 2; ++i) round_trip(20e6, lossy(100, 0));
  EXPECT_FALSE(startup_.over());
  round_trip(20e6, lossy(100, 0));
  EXPECT_TRUE(startup_.over());
}

TEST_F(WanStartupTest, ARoundTripOfFewPacketsSaysNothingOfGrowth) {
  for (int i = 0; i < 20; ++i) round_trip(1e6, lossy(39, 0));
  EXPECT_FALSE(startup_.over());
}

TEST_F(WanStartupTest, TheRateIsNotMoreThanThePacketsInFlightAllow) {
  round_trip(4e6);
  EXPECT_DOUBLE_EQ(startup_.rate(), 4e6);
  WanRound steps;
  steps.rate = 1e9;
  round_trip(4e6, steps);
  EXPECT_DOUBLE_EQ(startup_.rate(), (15'000 + 2 * 10'000) * 8 / 20e-3);
  EXPECT_EQ(startup_.window_bytes(), 35'000);
}

TEST_F(WanStartupTest, EndsWhenSamplesInARowFindAQueue) {
  double rate = 1e6;
  for (int i = 0; i < 5; ++i) round_trip(rate *= 2, {.queue_least = 0ms}, 6ms);
  EXPECT_FALSE(startup_.over());
  round_trip(rate * 2, {.queue_least = 0ms}, 6ms);
  EXPECT_TRUE(startup_.over());
}

TEST_F(WanStartupTest, ABurstOfLossesEndsItOnlyIfTheNextRoundTripHasOne) {
  round_trip(2e6, lossy(100, 0));
  round_trip(4e6, lossy(100, 60));
  EXPECT_FALSE(startup_.over());
  EXPECT_EQ(startup_.gain(), 1);
  round_trip(4e6, lossy(100, 60));
  EXPECT_TRUE(startup_.over());
}

TEST_F(WanStartupTest, AMarkEndsIt) {
  round_trip(2e6, {.marked = true});
  EXPECT_TRUE(startup_.over());
}

TEST_F(WanStartupTest, TheFirstOfTwoRoundTripsThatGrowTeachesTheFloor) {
  round_trip(20e6, lossy(1000, 50));
  EXPECT_EQ(losses_.floor().mean(), 0);
  round_trip(40e6, lossy(2000, 300));
  EXPECT_DOUBLE_EQ(losses_.floor().mean(), 0.05);
}

}  // namespace
}  // namespace leeway::congestion
