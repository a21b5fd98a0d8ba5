// Tests whole runs whose ranks stop at a compute threshold.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "unit/sim_run/record_of.h"

namespace leeway::sim {
namespace {

// Eight ranks, with 12 micro-batches of 15 ms on average and 10 ms of communication.
std::string scenario_with(const std::string& compute, const std::string& more = "",
                          std::uint32_t rounds = 60) {
  return "ranks: 8 rounds: " + std::to_string(rounds) +
         " link { delay_ms { fixed: 5 } } compute { drop_compute { micro_batch_ms: 10 " + compute +
         " } } operation { bytes: 16384 delivery { kind: exact deadline_ms: 5000 } } " + more;
}

TEST(RunCompute, ContributionsWeighWhatWasCompleted) {
  const RunRecord record = record_of(scenario_with("threshold_ms: 150"));
  EXPECT_GT(measure(record, "compute.drop_rate"), 0.1);
  EXPECT_LT(measure(record, "error.nmse"), 1e-9) << "the reference is weighted like the result";
}

// Rank 3, five times as slow, does not end its first forward pass in time.
TEST(RunCompute, ARankWithNothingCompletedContributesNothing) {
  const RunRecord record = record_of(
      scenario_with("factor: 0 threshold_ms: 45 forward_share: 1",
                    "slow { rank: 3 factor: 5 from_round: 4 } workload { synthetic { deviation: 0 "
                    "rank_deviation: 1 } }",
                    12));
  EXPECT_LT(measure(record, "error.nmse"), 1e-9);
  EXPECT_EQ(measure(record, "failed_calls"), 0);
  // There are 12 rounds with 96 micro-batches each. Each rank completes 4 in a round, but rank 3
  // none after the first four rounds.
  const double kept = (8 * 4 * 4 + 7 * 4 * 8) / (96.0 * 12);
  EXPECT_NEAR(measure(record, "compute.drop_rate"), 1 - kept, 1e-9);
}

// Packets arrive, but no rank has units of work. The checkers expect elements to be reported as
// untouched.
TEST(RunCompute, RoundsInWhichNobodyCompletesAnythingHaveNoAverage) {
  std::string slow;
  for (int rank = 0; rank < 8; ++rank) {
    slow += "slow { rank: " + std::to_string(rank) + " factor: 5 from_round: 2 } ";
  }
  const std::string exact =
      scenario_with("factor: 0 threshold_ms: 45 forward_share: 1",
                    slow + "workload { synthetic { mean: 1 deviation: 0 } }", 4);
  for (const std::string delivery : {"exact", "best_effort"}) {
    SCOPED_TRACE(delivery);
    std::string scenario = exact;
    scenario.replace(scenario.find("kind: exact"), 11, "kind: " + delivery);
    const RunRecord record = record_of(scenario);
    EXPECT_NEAR(record.rounds[1].value_mean_square, 1, 1e-6);
    EXPECT_LT(record.rounds[3].value_mean_square, 0) << "not known";
    EXPECT_EQ(measure(record, "failed_calls"), 0);
  }
}

// Returns the mean over rounds of the average, for gradients that are all 1.
double mean_average(const RunRecord& record) {
  EXPECT_LT(measure(record, "error.nmse"), 1e-9) << "results are what the reference is";
  double sum = 0;
  for (const RoundRecord& round : record.rounds) sum += std::sqrt(round.value_mean_square);
  return sum / static_cast<double>(record.rounds.size());
}

TEST(RunCompute, NormalisationDecidesWhetherTheAverageShrinks) {
  const std::string workload = "workload { synthetic { mean: 1 deviation: 0 } }";
  const RunRecord realised = record_of(scenario_with("threshold_ms: 150", workload));
  EXPECT_NEAR(mean_average(realised), 1, 1e-6);
  const RunRecord fixed =
      record_of(scenario_with("threshold_ms: 150 normalisation: fixed_maximum", workload));
  EXPECT_EQ(measure(fixed, "compute.drop_rate"), measure(realised, "compute.drop_rate"));
  EXPECT_NEAR(mean_average(fixed), 1 - measure(fixed, "compute.drop_rate"), 1e-6);
}

// Compares the reported speedup with the measured one, over the same run without a threshold.
TEST(RunCompute, SpeedupIsThatOverTheSameRunWithoutThreshold) {
  const RunRecord dropping =
      record_of(scenario_with("threshold_ms: 160 forward_share: 0.3 warm_up_rounds: 3"));
  const RunRecord whole = record_of(scenario_with("warm_up_rounds: 3"));
  EXPECT_EQ(measure(dropping, "compute.rounds"), 57);
  EXPECT_EQ(measure(whole, "compute.rounds"), 60);
  EXPECT_EQ(measure(whole, "compute.speedup"), 1);
  EXPECT_EQ(measure(whole, "compute.drop_rate"), 0);
  const double gained =
      measure(dropping, "compute.samples_per_s") / measure(whole, "compute.samples_per_s");
  EXPECT_GT(gained, 1.03);
  EXPECT_NEAR(measure(dropping, "compute.speedup"), gained, 0.01);
}

TEST(RunCompute, AnAutomaticThresholdIsMeasuredFromItsFirstRoundOn) {
  const RunRecord record = record_of(scenario_with(
      "warm_up_rounds: 2 threshold_auto { window_rounds: 20 adopt_after_rounds: 4 }"));
  EXPECT_EQ(measure(record, "compute.rounds"), 60 - 26);
  EXPECT_NEAR(measure(record, "compute.threshold_ms"), 140, 30);
  EXPECT_GT(measure(record, "compute.speedup"), 1.05);
  EXPECT_NEAR(measure(record, "compute.overhead_ms"), 10, 0.5);
  EXPECT_NEAR(measure(record, "compute.speedup_searched"), measure(record, "compute.speedup"), 0.1);
  EXPECT_NEAR(measure(record, "compute.speedup_predicted"), measure(record, "compute.speedup"),
              0.08);
  EXPECT_GE(measure(record, "compute.speedup_best_predicted"),
            measure(record, "compute.speedup_predicted") - 1e-3);
}

TEST(RunCompute, OnlyMicroBatchesAreMeasured) {
  const RunRecord record = record_of(
      "rounds: 2 operation { bytes: 4096 } link { delay_ms { fixed: 1 } } compute { constant_ms: 3 "
      "}");
  for (const Measure& measure : record.measures) {
    EXPECT_NE(measure.name.substr(0, 8), "compute.") << measure.name;
  }
}

}  // namespace
}  // namespace leeway::sim
