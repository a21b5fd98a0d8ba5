#include "budget/latency_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "step_runner.h"

namespace leeway::budget {
namespace {

using ::testing::ElementsAre;
using Latencies = std::vector<std::int64_t>;

TEST(LatencyWindowTable, HoldsWhatWasCompleted) {
  LatencyWindow window(2, 3);
  window.add_step(Latencies{1, 2, 3}, std::nullopt);
  EXPECT_FALSE(window.full());
  window.add_step(Latencies{4, 5, 6}, std::nullopt);
  ASSERT_TRUE(window.full());
  EXPECT_THAT(window.table().ns, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(window.table().micro_batches, 3u);
}

TEST(LatencyWindowTable, ImputesWhatNeverBeganByTurns) {
  LatencyWindow window(3, 4);
  window.add_step(Latencies{1, 2, 3}, std::nullopt);
  window.add_step({}, std::nullopt);
  window.add_step(Latencies{4}, std::nullopt);
  EXPECT_THAT(window.table().ns, ElementsAre(1, 2, 3, 1, 2, 3, 4, 1, 4, 2, 3, 4));
  EXPECT_THAT(window.table().ns, ElementsAre(1, 2, 3, 1, 2, 3, 4, 1, 4, 2, 3, 4)) << "again";
}

TEST(LatencyWindowTable, WhatWasGivenUpLastedLonger) {
  LatencyWindow window(3, 3);
  window.add_step(Latencies{1, 9}, Duration(5));
  window.add_step(Latencies{2, 7}, Duration(7));
  window.add_step(Latencies{3, 4}, Duration(9));
  // Each step's last micro-batch was aborted. It gets a completed latency that is longer than its
  // own time, from a search that goes around. The one aborted after 5 gets 9, the first such
  // latency. For the one aborted after 7, the search goes on from the 2 and around to the 9.
  // No time is longer than 9, so the last one keeps its own time.
  EXPECT_THAT(window.table().ns, ElementsAre(1, 9, 9, 2, 7, 9, 3, 4, 9));
}

TEST(LatencyWindowTable, SaysHowLongEachStepComputed) {
  LatencyWindow window(2, 3);
  window.add_step(Latencies{10, 5}, Duration(7));
  window.add_step(Latencies{1, 2, 3}, std::nullopt);
  EXPECT_THAT(window.table().computed_ns, ElementsAre(22, 6));
}

TEST(LatencyWindowTable, OfNothingCompletedIsEmpty) {
  LatencyWindow window(2, 2);
  window.add_step({}, Duration(5));
  window.add_step({}, std::nullopt);
  EXPECT_TRUE(window.table().ns.empty());
}

TEST(LatencyWindowClear, StartsAnew) {
  LatencyWindow window(1, 3);
  window.add_step(Latencies{8, 9}, std::nullopt);
  window.table();
  window.clear();
  EXPECT_EQ(window.steps(), 0u);
  window.add_step(Latencies{5, 6}, std::nullopt);
  EXPECT_THAT(window.table().ns, ElementsAre(5, 6, 5));
}

// Three means of the latencies of one run: the true mean, the mean with imputed values for aborted
// micro-batches, and the mean of completed ones. A threshold drops about a tenth of the lognormal
// micro-batches.
struct Disturbed {
  double true_mean_ns = 0;
  double imputed_mean_ns = 0;
  double completed_mean_ns = 0;
};
Disturbed run(bool checks_in_between, double sigma) {
  constexpr std::uint32_t kSteps = 250, kMicroBatches = 12;
  std::mt19937 random(5);
  std::lognormal_distribution<double> factor(-0.5 * sigma * sigma, sigma);  // mean 1
  StepGate gate({.micro_batches = kMicroBatches, .threshold = Duration(115 * kMs)});
  StepRunner runner{.gate = gate, .checks_in_between = checks_in_between};
  LatencyWindow window(kSteps, kMicroBatches);
  Disturbed result{.true_mean_ns = 10.0 * kMs};
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    Latencies latencies(kMicroBatches);
    for (auto& latency : latencies) latency = std::llround(10.0 * kMs * factor(random));
    runner.step(latencies);
    window.add_step(gate.latencies_ns(), gate.aborted_after());
    for (const std::int64_t ns : gate.latencies_ns())
      result.completed_mean_ns += static_cast<double>(ns);
  }
  result.completed_mean_ns /= static_cast<double>(gate.counts().completed);
  const auto all = window.table().ns;
  result.imputed_mean_ns =
      std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  return result;
}

TEST(LatencyWindowTable, KeepsTheMeanOfLatenciesUnderAThreshold) {
  for (const bool checks_in_between : {false, true}) {
    const Disturbed mild = run(checks_in_between, 0.4);
    EXPECT_NEAR(mild.imputed_mean_ns / mild.true_mean_ns, 1.0, 0.02) << checks_in_between;
    const Disturbed wild = run(checks_in_between, 1.0);
    EXPECT_NEAR(wild.imputed_mean_ns / wild.true_mean_ns, 1.0, 0.05) << checks_in_between;
  }
}

// The mean of what completed is too small, because the threshold drops long micro-batches. The
// imputed mean is nearer, because it uses how long aborted micro-batches had run.
TEST(LatencyWindowTable, IsNearerToTheTruthThanTheMeanOfWhatCompleted) {
  const Disturbed wild = run(true, 1.0);
  EXPECT_LT(wild.completed_mean_ns / wild.true_mean_ns, 0.97);
  EXPECT_LT(std::abs(wild.imputed_mean_ns - wild.true_mean_ns),
            std::abs(wild.completed_mean_ns - wild.true_mean_ns));
}

}  // namespace
}  // namespace leeway::budget
