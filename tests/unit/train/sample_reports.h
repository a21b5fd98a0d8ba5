// Reports of runs that never took place.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "train/train_report.h"

namespace leeway::tools::train {

inline RunResult run_with(double perplexity, double loss) {
  RunResult run;
  run.parameters = 1234;
  run.perplexity = perplexity;
  run.loss_observed = loss;
  run.bytes_sent = 2'000'000;
  run.step_ms_p50 = 10;
  run.step_ms_p99 = 20;
  DriftSummary& drift = run.drift.emplace();
  drift.pair_measured = 4e-6;
  drift.pair_predicted = 9e-6;
  drift.age_max_seen = loss > 0 ? 5 : 0;
  drift.age_shares[0] = 1.0 - loss;
  drift.age_shares[1] = loss;
  return run;
}

inline TrainReport report_of(std::vector<SeedOutcome> outcomes) {
  TrainReport report;
  report.settings = *understand(Arguments{}, Options{});
  report.ranks = 4;
  report.corpus = "bible-kjv";
  report.bigram_perplexity = 10.2;
  report.outcomes = std::move(outcomes);
  return report;
}

inline TrainReport one_seed() {
  return report_of({{1, run_with(4.04, 0.1), run_with(4.00, 0.0)}});
}
inline TrainReport three_seeds() {
  return report_of({{1, run_with(4.04, 0.1), run_with(4.00, 0.0)},
                    {2, run_with(4.08, 0.1), run_with(4.00, 0.0)},
                    {3, run_with(4.12, 0.1), run_with(4.00, 0.0)}});
}
inline TrainReport no_twin() {
  return report_of({{1, run_with(4.04, 0.1), std::nullopt}});
}

}  // namespace leeway::tools::train
