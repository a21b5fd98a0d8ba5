// Makes all runs of a plan, several at a time, each on one thread.
//
// Outcomes are in the order of the plan, whichever run ended first. So files written from them do
// not depend on the number of threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "run/run.h"
#include "sim/forecast.h"
#include "sim/plan.h"

namespace leeway::tools::simulation {

// sim::run, or a test's substitute.
using RunFunction = std::function<Result<sim::RunRecord>(
    const sim::scenario::Scenario& scenario, std::uint64_t seed, const sim::RunOptions& options)>;

// Outcome of one run. A run that was not made, or was stopped, has neither record nor failure.
struct Outcome {
  std::optional<sim::RunRecord> record;
  Status failure;
};

// Called while runs go on, by any thread, one call at a time.
class RunnerObserver {
 public:
  virtual ~RunnerObserver() = default;
  // Called first, if a forecast was asked for. `jobs` runs are made at a time.
  virtual void on_forecast(const Forecast& /*forecast*/, unsigned /*jobs*/) {}
  virtual void on_round(std::uint32_t rounds_done, std::uint32_t rounds) = 0;
  // Returns an error to stop everything, for instance if a finished run cannot be kept.
  virtual Status on_finished(const RunName& run, const sim::RunRecord& record) = 0;
};

struct RunnerOptions {
  RunFunction run;
  sim::RunOptions run_options;  // options of every run; progress and stop are set by the runner
  unsigned jobs = 1;
  bool forecast = false;  // first finds out how long all runs will take, in some seconds
  // If it becomes true, running runs give up, and no further ones begin. The runner also sets it
  // when the observer returns an error. Must not be null.
  std::atomic<bool>* stop = nullptr;
};

// `outcomes` has a place for each run. Runs with a record there are not made again. If a run fails,
// the others are still made. The error is the observer's.
Status run_all(const Plan& plan, const RunnerOptions& options, std::vector<Outcome>& outcomes,
               RunnerObserver& observer);

// Number of threads to use: one for each core unless `asked` says otherwise, and at most the number
// of runs.
unsigned jobs_for(unsigned asked, std::size_t runs);

}  // namespace leeway::tools::simulation
