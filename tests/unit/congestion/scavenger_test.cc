#include "congestion/scavenger.h"

#include <gtest/gtest.h>

#include "unit/congestion/bottleneck.h"

namespace leeway::congestion {
namespace {

using testing::Bottleneck;
using testing::FlowOptions;

TEST(Scavenger, AloneItTakesTheLineWithAQueueOfAtMostItsTarget) {
  Bottleneck line({.bits_per_second = 100e6, .rtt_seconds = 0.02, .queue_bdp = 10});
  line.add(FlowOptions{.control = CongestionControl::scavenger, .links = 3});
  line.run_until(10);
  line.reset();
  line.run_until(40);
  EXPECT_GT(line.share(0), 0.9);
  EXPECT_LT(line.queueing(0.95), 0.08);
  EXPECT_EQ(line.counts(0).overflowed, 0u);
}

TEST(Scavenger, MakesRoomForAFlowThatFillsTheQueue) {
  Bottleneck line({.bits_per_second = 100e6, .rtt_seconds = 0.02, .queue_bdp = 10});
  line.add(FlowOptions{.control = CongestionControl::scavenger, .links = 3});
  line.add(FlowOptions{.control = CongestionControl::fixed,
                       .rate_bits_per_second = 95'000'000,
                       .links = 3,
                       .start_seconds = 10});
  line.run_until(20);
  line.reset();
  line.run_until(40);
  EXPECT_LT(line.share(0), 0.1);
  EXPECT_GT(line.share(1), 0.9);
}

}  // namespace
}  // namespace leeway::congestion
