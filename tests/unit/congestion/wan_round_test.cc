#include "congestion/wan_round.h"

#include <gtest/gtest.h>

namespace leeway::congestion {
namespace {

using namespace std::chrono_literals;

TEST(WanRound, KeepsTheLargestRateAndTheRangeOfTheQueue) {
  WanRound round;
  round.add({.queueing = 3ms, .interval = 10ms, .delivered_bytes = 12'500}, true);
  round.add({.queueing = 1ms, .interval = 10ms, .delivered_bytes = 25'000}, true);
  round.add({.queueing = 2ms, .interval = 0ms, .delivered_bytes = 99'999}, true);
  EXPECT_DOUBLE_EQ(round.rate, 20e6);
  EXPECT_EQ(round.queue_least, 1ms);
  EXPECT_EQ(round.queue_most, 3ms);
}

TEST(WanRound, LossesOfEarlierRoundTripsDoNotCount) {
  WanRound round;
  round.add({.covered = 20, .lost = 10, .marked = 1}, false);
  EXPECT_EQ(round.loss.covered, 0);
  EXPECT_FALSE(round.marked);
  round.add({.covered = 20, .lost = 3, .marked = 1}, true);
  round.add({.covered = 20, .lost = -1}, true);
  EXPECT_EQ(round.loss.covered, 40);
  EXPECT_EQ(round.loss.lost, 2);
  EXPECT_TRUE(round.marked);
}

TEST(WanRound, IsUsedIfTheControllerLimitedAnyOfIt) {
  WanRound round;
  round.add({.limited = true}, true);
  EXPECT_FALSE(round.used);
  round.add({.limited = false}, true);
  EXPECT_TRUE(round.used);
}

}  // namespace
}  // namespace leeway::congestion
