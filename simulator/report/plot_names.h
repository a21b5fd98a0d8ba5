// Looks up measures by name, over any set of runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/statistics.h"
#include "run/run_record.h"
#include "scenario.pb.h"

namespace leeway::sim {

inline constexpr std::string_view kRoundName = "round";

// Returns statistics of the measure over the runs. A measure named "pooled.…" is taken over all
// records of the runs. `count` is 0 if no run has the measure.
Spread measure_of(const std::vector<const RunRecord*>& runs, std::string_view name);

// Returns the plot's measures: y, then also_y.
std::vector<std::string> drawn_measures(const scenario::Report::Plot& plot);

// Names of the run's measures and of the pooled ones.
std::vector<std::string> plot_measures(const RunRecord& run);

}  // namespace leeway::sim
