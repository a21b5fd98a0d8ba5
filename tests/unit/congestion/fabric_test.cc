#include "congestion/fabric.h"

#include <gtest/gtest.h>

#include "unit/congestion/bottleneck.h"

namespace leeway::congestion {
namespace {

using testing::Bottleneck;
using testing::FlowOptions;
using testing::Line;

struct Outcome {
  double share = 0;     // all flows' share of the line
  double overflow = 0;  // share of all packets
  double jain = 0;
};

Outcome outcome_of(const Line& line, std::size_t flows, std::size_t links) {
  Bottleneck bottleneck(line);
  for (std::size_t i = 0; i < flows; ++i) {
    bottleneck.add(
        FlowOptions{.control = CongestionControl::fabric,
                    .links = links,
                    .start_seconds = 0.02 * static_cast<double>(i) / static_cast<double>(flows)});
  }
  bottleneck.run_until(0.1);
  bottleneck.reset();
  bottleneck.run_until(0.2);
  Outcome outcome;
  double squares = 0;
  double sent = 0;
  for (std::size_t i = 0; i < flows; ++i) {
    outcome.share += bottleneck.share(i);
    squares += bottleneck.share(i) * bottleneck.share(i);
    sent += static_cast<double>(bottleneck.counts(i).sent);
    outcome.overflow += static_cast<double>(bottleneck.counts(i).overflowed);
  }
  outcome.overflow /= sent;
  outcome.jain = outcome.share * outcome.share / (static_cast<double>(flows) * squares);
  return outcome;
}

Line line_of(double gbps, double rtt_ms, double queue_ms) {
  return {
      .bits_per_second = gbps * 1e9, .rtt_seconds = rtt_ms / 1e3, .queue_bdp = queue_ms / rtt_ms};
}

TEST(Fabric, FillsALineAndNotItsQueue) {
  for (const double gbps : {1.0, 10.0}) {
    for (const double rtt_ms : {0.05, 0.2}) {
      const Outcome outcome = outcome_of(line_of(gbps, rtt_ms, 0.2), 1, 7);
      EXPECT_GT(outcome.share, 0.9) << gbps << " " << rtt_ms;
      EXPECT_LT(outcome.overflow, 0.001) << gbps << " " << rtt_ms;
    }
  }
}

TEST(Fabric, SharesALineWithItsLike) {
  for (const double gbps : {1.0, 10.0}) {
    for (const std::size_t flows : {std::size_t{2}, std::size_t{8}}) {
      const Outcome outcome = outcome_of(line_of(gbps, 0.2, 0.2), flows, 7);
      EXPECT_GT(outcome.jain, 0.85) << gbps << " " << flows;
      EXPECT_GT(outcome.share, 0.9) << gbps << " " << flows;
      EXPECT_LT(outcome.overflow, 0.02) << gbps << " " << flows;
    }
  }
}

// 64 senders share a buffer of 100 KB. They must fill the line, share it evenly, and overflow the
// buffer with less than a tenth of their packets.
TEST(Fabric, SixtyFourSendersFitIntoAShallowBuffer) {
  for (const double gbps : {1.0, 10.0}) {
    Line line = line_of(gbps, 0.05, 0.2);
    line.queue_bdp = 100e3 / line.bdp_bytes();
    const Outcome outcome = outcome_of(line, 64, 1);
    EXPECT_GT(outcome.share, 0.9) << gbps;
    EXPECT_LT(outcome.overflow, 0.1) << gbps;
    EXPECT_GT(outcome.jain, 0.9) << gbps;
  }
}

// The line's rate falls to a tenth. 10 ms later the flow must have adapted: the queue is short,
// almost nothing overflows, and the line is used.
TEST(Fabric, FollowsALineThatBecomesATenth) {
  Bottleneck line(line_of(10, 0.2, 1));
  line.add(FlowOptions{.control = CongestionControl::fabric, .links = 7});
  line.run_until(0.1);
  line.set_rate(1e9);
  line.run_until(0.11);
  line.reset();
  line.run_until(0.15);
  EXPECT_LT(line.overflow_share(0), 0.001);
  EXPECT_LT(line.queueing(0.95), 0.2e-3);
  EXPECT_GT(line.share(0), 0.9);
}

TEST(Fabric, SlowsDownForMarks) {
  Line line = line_of(1, 0.2, 1);
  line.mark_bdp = 0.1;
  Bottleneck marking(line);
  marking.add(FlowOptions{.control = CongestionControl::fabric, .links = 7});
  marking.run_until(0.2);
  line.mark_bdp = 0;
  Bottleneck silent(line);
  silent.add(FlowOptions{.control = CongestionControl::fabric, .links = 7});
  silent.run_until(0.2);
  EXPECT_LT(marking.queueing(0.95), 0.7 * silent.queueing(0.95));
  EXPECT_GT(marking.share(0), 0.8);
}

// The controller ignores a random loss of 1 %.
TEST(Fabric, DoesNotTakeAFewLossesForAQueue) {
  Line line = line_of(10, 0.2, 1);
  line.loss = 0.01;
  EXPECT_GT(outcome_of(line, 1, 7).share, 0.75);
}

}  // namespace
}  // namespace leeway::congestion
