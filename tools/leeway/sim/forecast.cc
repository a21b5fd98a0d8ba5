#include "sim/forecast.h"

#include <algorithm>
#include <numeric>

#include "format.h"

namespace leeway::tools::simulation {
namespace {

constexpr double kWorthSaying = 5;  // seconds

std::string counted(std::size_t count, const char* one, const char* many) {
  return format("%zu %s", count, count == 1 ? one : many);
}

std::string about(double seconds) {
  const auto tens = static_cast<unsigned>((seconds + 5) / 10);
  if (seconds < 10) return format("about %.0f s", seconds);
  if (seconds < 95) return format("about %u s", tens * 10);
  if (seconds < 5400) return format("about %.0f minutes", seconds / 60);
  return format("about %.1f hours", seconds / 3600);
}

}  // namespace

double whole_run_seconds(const Beginning& beginning, const sim::scenario::Scenario& scenario) {
  if (beginning.rounds == 0) return 0;
  // A run ends after its rounds or after its simulated time, whichever comes first. The first round
  // includes the set-up, so it is left out if there are others.
  const bool several = beginning.rounds > 1;
  const double skipped = several ? 1 : 0;
  double share = (beginning.rounds - skipped) / std::max(scenario.rounds() - skipped, 1.0);
  if (scenario.has_duration_ms()) {
    const double first_ms = several ? static_cast<double>(beginning.first_ns) / 1e6 : 0;
    const double seen_ms = static_cast<double>(beginning.simulated_ns) / 1e6 - first_ms;
    share = std::max(share, seen_ms / std::max(scenario.duration_ms() - first_ms, 1e-6));
  }
  const double before = several ? beginning.first_seconds : 0;
  return before + (beginning.seconds - before) / std::clamp(share, 1e-9, 1.0);
}

Forecast forecast_of(const std::vector<double>& whole_runs, std::size_t runs, unsigned jobs) {
  if (whole_runs.empty()) return {.seconds = 0, .unknown = true};
  const double mean = std::accumulate(whole_runs.begin(), whole_runs.end(), 0.0) /
                      static_cast<double>(whole_runs.size());
  return {.seconds = mean * static_cast<double>(runs) / std::max(jobs, 1U), .unknown = false};
}

std::vector<std::size_t> cells_to_try(std::size_t cells, std::size_t most) {
  const std::size_t count = std::min(cells, most);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back((2 * i + 1) * cells / (2 * count));
  return chosen;
}

std::string forecast_text(const Plan& plan, const Forecast& forecast, unsigned jobs) {
  if (!forecast.unknown && forecast.seconds < kWorthSaying) return {};
  const std::string part =
      plan.shard.whole() ? "" : to_string(plan.shard) + ", " + std::to_string(plan.runs()) + " of ";
  const std::string what = part + counted(plan.all_runs(), "run", "runs") + " (" +
                           counted(plan.grid.size(), "cell", "cells") + ", " +
                           counted(plan.seeds.count, "seed", "seeds") + "): ";
  if (forecast.unknown) return what + "time not known, a round takes more than some seconds";
  return what + about(forecast.seconds) + " on " + counted(jobs, "core", "cores");
}

}  // namespace leeway::tools::simulation
