// Makes all runs of a plan, several at a time, each on one thread.
//
// Outcomes stand in the order of the plan, whichever run ended first, so that what is written from
// them does not depend on the number of threads.
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

// Told while runs go on, by any thread, one call at a time.
class RunnerObserver {
 public:
  virtual ~RunnerObserver() = default;
  // Before all else, if it was asked for. `jobs` runs are made at a time.
  virtual void on_forecast(const Forecast& /*forecast*/, unsigned /*jobs*/) {}
  virtual void on_round(std::uint32_t rounds_done, std::uint32_t rounds) = 0;
  // An error stops everything: a finished run that cannot be kept.
  virtual Status on_finished(const RunName& run, const sim::RunRecord& record) = 0;
};

struct RunnerOptions {
  RunFunction run;
  sim::RunOptions run_options;  // options of every run; progress and stop are set by the runner
  unsigned jobs = 1;
  bool forecast = false;  // first find out how long all will take, in some seconds
  // Once it is true, running runs give up and no further ones begin. The runner sets it, too, when
  // the observer refuses to go on. Must not be null.
  std::atomic<bool>* stop = nullptr;
};

// `outcomes` holds one place a run; those that have a record already are not run again. A run that
// fails does not keep the others from being made. The error is the observer's.
Status run_all(const Plan& plan, const RunnerOptions& options, std::vector<Outcome>& outcomes,
               RunnerObserver& observer);

// Threads to use: one a core unless `asked` says otherwise, and never more than runs.
unsigned jobs_for(unsigned asked, std::size_t runs);

}  // namespace leeway::tools::simulation
