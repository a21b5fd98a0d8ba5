#include "budget/step_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "step_runner.h"

namespace leeway::budget {
namespace {

using ::testing::ElementsAre;

StepGateOptions options(std::uint32_t micro_batches, std::int64_t threshold_ms) {
  return {.micro_batches = micro_batches, .threshold = Duration(threshold_ms * kMs)};
}

TEST(StepGateNext, WithoutThresholdRunsAllMicroBatches) {
  StepGate gate({.micro_batches = 3});
  StepRunner runner{gate};
  EXPECT_EQ(runner.step_of_ms({10, 1000, 100000}), 3u);
  EXPECT_EQ(gate.counts().steps_stopped, 0u);
  EXPECT_FALSE(gate.in_step());
}

TEST(StepGateNext, BeginsNoMicroBatchOnceTheThresholdHasPassed) {
  StepGate gate(options(5, 25));
  StepRunner runner{gate};
  EXPECT_EQ(runner.step_of_ms({10, 10, 10, 10, 10}), 3u);
  EXPECT_EQ(runner.step_of_ms({10, 15, 10, 10, 10}), 2u) << "a step as long as the threshold ends";
  EXPECT_EQ(runner.step_of_ms({1, 1, 1, 1, 1}), 5u);
  EXPECT_EQ(gate.counts().steps, 3u);
  EXPECT_EQ(gate.counts().steps_stopped, 2u);
  EXPECT_EQ(gate.counts().planned, 15u);
  EXPECT_EQ(gate.counts().completed, 10u);
  EXPECT_EQ(gate.counts().dropped, 5u);
}

TEST(StepGateNext, CountsTimeFromTheStepsBeginning) {
  StepGate gate(options(4, 25));
  StepRunner runner{gate};
  runner.step_of_ms({10, 10, 10, 10});
  runner.now += Duration(500 * kMs);  // reduction and optimizer
  EXPECT_EQ(runner.step_of_ms({10, 10, 10, 10}), 3u);
}

TEST(StepGateNext, NeverStopsInTheWarmUp) {
  StepGateOptions warm = options(4, 15);
  warm.warm_up_steps = 2;
  StepGate gate(warm);
  StepRunner runner{gate};
  EXPECT_EQ(runner.step_of_ms({10, 10, 10, 10}), 4u);
  EXPECT_EQ(runner.step_of_ms({10, 10, 10, 10}), 4u);
  EXPECT_EQ(runner.step_of_ms({10, 10, 10, 10}), 2u);
}

TEST(StepGateNext, NeverStopsBelowTheFloor) {
  StepGateOptions floor = options(4, 15);
  floor.micro_batches_min = 3;
  StepGate gate(floor);
  StepRunner runner{.gate = gate, .checks_in_between = true};
  EXPECT_EQ(runner.step_of_ms({10, 10, 10, 10}), 3u);
}

TEST(StepGateNext, KeepsTheLatenciesOfTheStep) {
  StepGate gate(options(4, 25));
  StepRunner runner{gate};
  runner.step_of_ms({7, 8, 20, 9});
  EXPECT_THAT(gate.latencies_ns(), ElementsAre(7 * kMs, 8 * kMs, 20 * kMs));
  EXPECT_FALSE(gate.aborted_after());
  EXPECT_EQ(gate.shortest(), Duration(7 * kMs));
}

TEST(StepGateShouldStop, GivesUpTheMicroBatchThatRuns) {
  StepGate gate(options(5, 25));
  StepRunner runner{.gate = gate, .checks_in_between = true};
  EXPECT_EQ(runner.step_of_ms({10, 10, 12, 10, 10}), 2u);
  EXPECT_EQ(gate.aborted_after(), Duration(6 * kMs));
  EXPECT_EQ(gate.counts().aborted, 1u);
  EXPECT_EQ(gate.counts().dropped, 3u);
  EXPECT_EQ(runner.step_of_ms({10, 10, 9, 10, 10}), 3u) << "the next call begins a step";
  EXPECT_FALSE(gate.aborted_after());
}

TEST(StepGateShouldStop, OutsideAStepSaysNo) {
  StepGate gate(options(1, 5));
  EXPECT_FALSE(gate.should_stop(Instant{}));
  StepRunner runner{gate};
  runner.step_of_ms({10});
  EXPECT_FALSE(gate.should_stop(runner.now));
}

TEST(StepGateShouldStop, LeavesAWorkerWithoutAnyMicroBatchIfTheFloorIsNone) {
  StepGateOptions none = options(3, 15);
  none.micro_batches_min = 0;
  StepGate gate(none);
  StepRunner runner{.gate = gate, .checks_in_between = true};
  EXPECT_EQ(runner.step_of_ms({10, 10, 10}), 1u) << "the second is given up after 5 ms";
  EXPECT_EQ(runner.step_of_ms({50, 10, 10}), 0u);
  EXPECT_EQ(gate.counts().threshold_clamps, 0u);
}

TEST(StepGateShouldStop, CompletesOneMicroBatchWhereNoneCanEndInTime) {
  StepGateOptions none = options(3, 15);
  none.micro_batches_min = 0;
  StepGate gate(none);
  StepRunner runner{.gate = gate, .checks_in_between = true};
  for (int step = 1; step <= 3; ++step) {
    EXPECT_EQ(runner.step_of_ms({30, 30, 30}), 1u);
    EXPECT_EQ(gate.counts().threshold_clamps, static_cast<std::uint64_t>(step));
  }
}

TEST(StepGateStopShare, IsWhereInMicroBatchesItIsAsked) {
  StepGate gate(options(3, 1000));
  EXPECT_EQ(gate.stop_share_1024(), 0u);
  StepRunner{gate}.step_of_ms({10, 10, 10});
  EXPECT_EQ(gate.stop_share_1024(), 0u) << "never asked";
  StepRunner{.gate = gate, .checks_in_between = true}.step_of_ms({10, 20, 6});
  EXPECT_EQ(gate.stop_share_1024(), 512u) << "those in which it was not asked do not count";
}

TEST(StepGateSetThreshold, CountsFromTheNextStepOn) {
  StepGate gate(options(3, 1000));
  ASSERT_TRUE(gate.next(Instant{0}));
  gate.set_threshold(Duration(15 * kMs));
  EXPECT_TRUE(gate.next(Instant{10 * kMs})) << "of the old one 1000 ms are left";
  EXPECT_EQ(gate.threshold(), Duration(15 * kMs));
  while (gate.in_step()) gate.next(Instant{20 * kMs});
  StepRunner runner{gate};
  EXPECT_EQ(runner.step_of_ms({10, 10, 10}), 2u);
  gate.set_threshold(kNoThreshold);
  EXPECT_EQ(runner.step_of_ms({10, 10, 10}), 3u);
}

TEST(StepGateClock, ThatGoesBackStandsStillAndIsCounted) {
  StepGate gate(options(4, 25));
  ASSERT_TRUE(gate.next(Instant{1000 * kMs}));
  EXPECT_TRUE(gate.next(Instant{1010 * kMs}));
  EXPECT_TRUE(gate.next(Instant{3 * kMs})) << "10 ms have passed";
  EXPECT_EQ(gate.counts().clock_clamps, 1u);
  EXPECT_FALSE(gate.next(Instant{18 * kMs})) << "25 ms have passed";
  EXPECT_THAT(gate.latencies_ns(), ElementsAre(10 * kMs, 0, 15 * kMs));
  EXPECT_EQ(gate.counts().clock_clamps, 1u);
}

TEST(StepGateClock, ThatJumpsAheadEndsOneStep) {
  StepGate gate(options(4, 25));
  ASSERT_TRUE(gate.next(Instant{0}));
  EXPECT_FALSE(gate.next(Instant{INT64_MAX}));
  EXPECT_EQ(gate.counts().clock_clamps, 1u);
  EXPECT_THAT(gate.latencies_ns(), ElementsAre(kLatencyMaxNs));
  ASSERT_TRUE(gate.next(Instant{INT64_MIN})) << "and back";
  EXPECT_EQ(gate.counts().clock_clamps, 2u);
  EXPECT_EQ(gate.step_start(), Instant{kLatencyMaxNs});
  EXPECT_TRUE(gate.next(Instant{INT64_MIN + 10 * kMs}));
}

TEST(StepGateClock, MayPauseBetweenSteps) {
  StepGate gate(options(1, 25));
  ASSERT_TRUE(gate.next(Instant{-5 * kMs})) << "and may start anywhere";
  ASSERT_FALSE(gate.next(Instant{5 * kMs}));
  ASSERT_TRUE(gate.next(Instant{3 * kLatencyMaxNs}));
  EXPECT_EQ(gate.counts().clock_clamps, 0u);
}

TEST(StepGateDeviceTime, CountsWhereItIsMoreThanTheHosts) {
  StepGate gate(options(5, 25));
  ASSERT_TRUE(gate.next(Instant{0}, 0.0));
  EXPECT_TRUE(gate.next(Instant{1 * kMs}, 0.012));
  EXPECT_TRUE(gate.next(Instant{2 * kMs}, 0.0125));
  EXPECT_FALSE(gate.next(Instant{3 * kMs}, 0.0005)) << "25 ms of device time";
  EXPECT_THAT(gate.latencies_ns(), ElementsAre(12 * kMs, 12'500'000, 500'000));
  ASSERT_TRUE(gate.next(Instant{10 * kMs}, 5.0)) << "nothing has run";
  EXPECT_FALSE(gate.next(Instant{36 * kMs}, 0.001)) << "26 ms on the host";
  ASSERT_TRUE(gate.next(Instant{40 * kMs}, 0.0));
  EXPECT_TRUE(gate.next(Instant{41 * kMs}, 0.024)) << "of this step 24 ms";
}

TEST(StepGateDeviceTime, ThatIsNoTimeGivesWayToTheHostsAndIsCounted) {
  constexpr double kBad[] = {std::numeric_limits<double>::quiet_NaN(), -1e-9, 3601.0,
                             std::numeric_limits<double>::infinity()};
  StepGate gate({.micro_batches = 4});
  Instant now{0};
  ASSERT_TRUE(gate.next(now));
  for (const double seconds : kBad) gate.next(now += Duration(10 * kMs), seconds);
  EXPECT_THAT(gate.latencies_ns(), ElementsAre(10 * kMs, 10 * kMs, 10 * kMs, 10 * kMs));
  EXPECT_EQ(gate.counts().latency_clamps, 4u);
}

}  // namespace
}  // namespace leeway::budget
