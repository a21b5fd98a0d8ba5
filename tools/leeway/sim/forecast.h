// How long a command's runs will take, from the beginnings of some of them.
//
// The runs of a grid differ widely in cost, and machines do too. So cells from all over the grid
// are run for a moment each, and their times are extrapolated to all runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan.h"

namespace leeway::tools::simulation {

// Progress of a run within its first seconds.
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

// Returns the seconds that the whole run takes, or 0 if it finished no round.
double whole_run_seconds(const Beginning& beginning, const sim::scenario::Scenario& scenario);

// Forecasts the time of all runs from the mean of the tried ones.
Forecast forecast_of(const std::vector<double>& whole_runs, std::size_t runs, unsigned jobs);

// Chooses at most `most` cells, from all over the grid.
std::vector<std::size_t> cells_to_try(std::size_t cells, std::size_t most);

// Returns "72 runs (36 cells, 2 seeds): about 3 minutes on 2 cores", or no text for runs that are
// over at once.
std::string forecast_text(const Plan& plan, const Forecast& forecast, unsigned jobs);

}  // namespace leeway::tools::simulation
