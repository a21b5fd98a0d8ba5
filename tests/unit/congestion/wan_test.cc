// Tests one flow alone on its line. The simulator shows the effects of other flows.
#include "congestion/wan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "unit/congestion/bottleneck.h"

namespace leeway::congestion {
namespace {

using testing::Bottleneck;
using testing::FlowOptions;
using testing::Line;

struct WanOutcome {
  double share = 0;  // share of the bytes that can arrive
  double overflow = 0;
};

WanOutcome wan_outcome_of(const Line& line, double from_seconds, double to_seconds) {
  Bottleneck bottleneck(line);
  bottleneck.add(FlowOptions{.control = CongestionControl::wan, .links = 7});
  bottleneck.run_until(from_seconds);
  bottleneck.reset();
  bottleneck.run_until(to_seconds);
  return {bottleneck.share(0) / (1 - line.loss), bottleneck.overflow_share(0)};
}

TEST(Wan, FillsALineWhateverItLoses) {
  for (const double loss : {0.0, 0.01, 0.1, 0.2}) {
    const WanOutcome outcome = wan_outcome_of({.queue_bdp = 1, .loss = loss}, 4, 12);
    EXPECT_GT(outcome.share, 0.95) << loss;
    EXPECT_LT(outcome.overflow, 0.02) << loss;
  }
}

TEST(Wan, FillsALineThatLosesInBursts) {
  for (const double loss : {0.02, 0.05, 0.1}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const Line line{.queue_bdp = 1, .loss = loss, .burst = 8, .seed = seed};
      const WanOutcome outcome = wan_outcome_of(line, 8, 20);
      EXPECT_GT(outcome.share, 0.9) << loss << " " << seed;
      EXPECT_LT(outcome.overflow, 0.02) << loss << " " << seed;
    }
  }
}

// Reports a round trip of 20 ms on a line of 100 Gb/s, in which the share `lost` of the packets was
// lost.
void report_round(Wan& wan, Instant& now, double lost, Duration queueing) {
  constexpr Duration kRoundTrip = std::chrono::milliseconds(20);
  const double sent_bytes = std::min(wan.pace().bits_per_second, 100e9) / 8 * 0.02;
  const auto delivered = static_cast<std::uint64_t>((1 - lost) * sent_bytes);
  now = now + kRoundTrip;
  wan.on_sample({.now = now,
                 .rtt = kRoundTrip,
                 .rtt_min = kRoundTrip,
                 .queueing = queueing,
                 .interval = kRoundTrip,
                 .delivered_bytes = delivered,
                 .newly_delivered_bytes = delivered,
                 .covered = static_cast<std::uint32_t>(sent_bytes / kPacketBytes),
                 .lost = static_cast<std::int32_t>(lost * sent_bytes / kPacketBytes),
                 .phase = wan.pace().phase});
}

// A burst may take half of the few packets in one round trip of startup. A queue that overflows
// loses as many again in the next round trip, and startup must end only then.
TEST(Wan, StartsThroughABurst) {
  const auto pace_after = [](int flooded) {
    Wan wan;
    Instant now{1'000'000'000};
    for (int round = 0; round < 10; ++round) {
      const bool lost = round >= 4 && round < 4 + flooded;
      report_round(wan, now, lost ? 0.5 : 0, Duration(0));
    }
    return wan.pace().bits_per_second;
  };
  EXPECT_GT(pace_after(1), 8 * pace_after(2));
}

// A standing queue and the line's own losses have cut CUBIC's window. The queue that remains is
// shorter than the target and longer than half of it. So it is only a delay that has grown, and the
// pace must grow again.
TEST(Wan, CompetesWithNobodyBesideAShortQueue) {
  Wan wan;
  Instant now{1'000'000'000};
  const auto report_rounds = [&](int rounds, double lost, Duration queueing) {
    for (int round = 0; round < rounds; ++round) report_round(wan, now, lost, queueing);
  };
  report_rounds(10, 0, Duration(0));
  report_rounds(60, 0.05, std::chrono::milliseconds(8));
  EXPECT_LT(wan.pace().bits_per_second, 50e6);
  report_rounds(120, 0, std::chrono::microseconds(900));
  EXPECT_GT(wan.pace().bits_per_second, 1e9);
}

// A first burst of losses looks like an overflow of the queue, in which only the sender's own
// train stands. If half of that became the target, every longer queue would count as a standing
// one. The pace ends at 3,900 Mb/s. Without a second judgement of the overflow it ends at 30 Mb/s.
TEST(Wan, ForgetsAnOverflowThatWasABurst) {
  constexpr Duration kTrain = std::chrono::microseconds(40);
  Wan wan;
  Instant now{1'000'000'000};
  std::mt19937 random(1);
  const auto burst = [&](int round) {
    return round == 1 ? 0.4 : static_cast<double>(random() % 5) / 40;
  };
  for (int round = 0; round < 200; ++round)
    report_round(wan, now, burst(round), round < 140 ? kTrain : 8 * kTrain);
  EXPECT_GT(wan.pace().bits_per_second, 1e9);
}

struct Shares {
  double mean = 0;
  double least = 1;
};

// Returns the shares that one flow gets of a line. The line loses a twentieth of the packets in
// bursts, and no flow fills its queue.
Shares shares_in_bursts(double bits_per_second, std::uint64_t seeds, double from_seconds,
                        double to_seconds) {
  Shares shares;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Line line{.bits_per_second = bits_per_second,
                    .queue_bdp = 2.5,
                    .loss = 0.05,
                    .burst = 8,
                    .seed = seed};
    const double share = wan_outcome_of(line, from_seconds, to_seconds).share;
    shares.mean += share / static_cast<double>(seeds);
    shares.least = std::min(shares.least, share);
  }
  return shares;
}

// If the noise floor learned only from round trips without bursts, each burst would cost a part of
// the pace. Flows would get 0.86 of the line in the first seconds, and 0.37 with the slowest seed.
TEST(Wan, LearnsFromBurstsFarBelowWhatTheLineHasCarried) {
  const Shares shares = shares_in_bursts(125e6, 8, 1, 4);
  EXPECT_GT(shares.mean, 0.92);
  EXPECT_GT(shares.least, 0.75);
}

// In the second second, the noise floor explains the losses that cut the rate in the first second.
// A rate that only grew by steps would get 0.91 of the line then, and 0.63 with the slowest seed.
TEST(Wan, TakesBackWhatBurstsCostBeforeTheFloorWasKnown) {
  const Shares shares = shares_in_bursts(500e6, 16, 1, 1.5);
  EXPECT_GT(shares.mean, 0.94);
  EXPECT_GT(shares.least, 0.8);
}

TEST(Wan, DoesNotTakeTheOverflowOfAShortQueueForNoise) {
  for (const double queue : {0.02, 0.2}) {
    for (const double loss : {0.0, 0.1}) {
      const WanOutcome outcome = wan_outcome_of({.queue_bdp = queue, .loss = loss}, 4, 12);
      EXPECT_GT(outcome.share, 0.75) << queue << " " << loss;
      EXPECT_LT(outcome.overflow, 0.04) << queue << " " << loss;
    }
  }
}

// A controller must slow down for marks before the queue overflows, even if the line itself loses
// packets.
TEST(Wan, SlowsDownForMarks) {
  for (const double loss : {0.0, 0.05}) {
    const Line line{.queue_bdp = 0.03, .loss = loss};
    Line marking = line;
    marking.mark_bdp = 0.01;
    const WanOutcome outcome = wan_outcome_of(marking, 4, 12);
    EXPECT_LT(2 * outcome.overflow, wan_outcome_of(line, 4, 12).overflow) << loss;
    EXPECT_GT(outcome.share, 0.75) << loss;
  }
}

// The line's rate falls to a tenth, so the queue is full. Startup has taught the noise floor some
// loss, but that must not excuse the losses of the full queue. After half a second the flow must
// have adapted: less than a fifth of its packets overflow.
TEST(Wan, FollowsALineThatBecomesATenth) {
  for (const double loss : {0.0, 0.1}) {
    Bottleneck line({.queue_bdp = 0.2, .loss = loss});
    line.add(FlowOptions{.control = CongestionControl::wan, .links = 7});
    line.run_until(10);
    line.set_rate(10e6);
    line.run_until(10.5);
    line.reset();
    line.run_until(12);
    EXPECT_LT(line.overflow_share(0), 0.2) << loss;
  }
}

TEST(Wan, AProbeThatFindsMoreIsFollowedByAnother) {
  Bottleneck line({.bits_per_second = 10e6, .queue_bdp = 1});
  line.add(FlowOptions{.control = CongestionControl::wan, .links = 7});
  line.run_until(5);
  line.set_rate(50e6);
  line.run_until(9);
  line.reset();
  line.run_until(10);
  EXPECT_GT(line.share(0), 0.8);
}

TEST(Wan, TakesALineThatBecomesWide) {
  Bottleneck line({.bits_per_second = 10e6, .queue_bdp = 1});
  line.add(FlowOptions{.control = CongestionControl::wan, .links = 7});
  line.run_until(5);
  line.set_rate(50e6);
  line.run_until(25);
  line.reset();
  line.run_until(30);
  EXPECT_GT(line.share(0), 0.9);
}

}  // namespace
}  // namespace leeway::congestion
