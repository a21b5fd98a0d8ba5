// Makes all runs of a plan, several at a time, each on one thread.
//
// Outcomes are in the order of the plan, not of completion. So files made from them do not depend
// on the number of threads.
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

// Its functions are called by any thread, but never two at a time.
class RunnerObserver {
 public:
  virtual ~RunnerObserver() = default;
  // Called first, if a forecast was asked for. `jobs` is the number of threads.
  virtual void on_forecast(const Forecast& /*forecast*/, unsigned /*jobs*/) {}
  virtual void on_round(std::uint32_t rounds_done, std::uint32_t rounds) = 0;
  // May return an error, which stops everything, for instance if a result cannot be written.
  virtual Status on_finished(const RunName& run, const sim::RunRecord& record) = 0;
};

struct RunnerOptions {
  RunFunction run;
  sim::RunOptions run_options;  // options of every run; progress and stop are set by the runner
  unsigned jobs = 1;
  bool forecast = false;  // first finds out how long all runs will take, in some seconds
  // If it becomes true, running runs stop, and no more begin. The runner sets it when the observer
  // returns an error. Must not be null.
  std::atomic<bool>* stop = nullptr;
};

// Makes the runs that have no record in `outcomes`, which has an element for each run. If a run
// fails, the others are still made. Returns the observer's error.
Status run_all(const Plan& plan, const RunnerOptions& options, std::vector<Outcome>& outcomes,
               RunnerObserver& observer);

// Returns the number of threads: `asked`, or one for each core if that is 0; at most the number of
// runs.
unsigned jobs_for(unsigned asked, std::size_t runs);

}  // namespace leeway::tools::simulation
