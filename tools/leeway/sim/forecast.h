// Forecasts how long all runs of a command will take.
//
// Runs of a grid differ widely in cost, and so do machines. So cells from all over the grid are run
// for a moment each, and the times are extrapolated to all runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan.h"

namespace leeway::tools::simulation {

// How far a run came in its first seconds.
struct Beginning {
  double first_seconds = 0;       // time to the end of its first round, including the set-up
  double seconds = 0;             // time to the end of the last finished round
  std::uint32_t rounds = 0;       // finished
  std::int64_t first_ns = 0;      // simulated time at the end of the first round
  std::int64_t simulated_ns = 0;  // simulated time at the end of the last finished round
};

struct Forecast {
  double seconds = 0;    // for all runs that are to be made, `jobs` at a time
  bool unknown = false;  // true if no tried run finished a round
};

// Returns the forecast seconds for the whole run, or 0 if no round has finished.
double whole_run_seconds(const Beginning& beginning, const sim::scenario::Scenario& scenario);

// Forecasts the time of `runs` runs from the mean over `whole_runs`, the times of the tried runs.
Forecast forecast_of(const std::vector<double>& whole_runs, std::size_t runs, unsigned jobs);

// Chooses at most `most` cells, from all over the grid.
std::vector<std::size_t> cells_to_try(std::size_t cells, std::size_t most);

// Returns "72 runs (36 cells, 2 seeds): about 3 minutes on 2 cores", or no text for runs that are
// over at once.
std::string forecast_text(const Plan& plan, const Forecast& forecast, unsigned jobs);

}  // namespace leeway::tools::simulation
