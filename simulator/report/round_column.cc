#include "report/round_column.h"

#include <algorithm>
#include <cmath>

#include "report/statistics.h"

namespace leeway::sim {
namespace {

double known(double value) {
  return value < 0 ? kUnknown : value;
}

double ms(std::int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

double missing(const RoundRecord& round, std::uint64_t arrived) {
  if (round.expected == 0) return kUnknown;
  return 100 * (1 - static_cast<double>(arrived) / static_cast<double>(round.expected));
}

double nmse(const RoundRecord& round) {
  if (round.error_mean_square < 0 || round.value_mean_square <= 0) return kUnknown;
  return round.error_mean_square / round.value_mean_square;
}

// Returns the mean of the known values of rounds first .. last - 1.
double mean_of(const RunRecord& run, const RoundColumn& column, std::size_t first,
               std::size_t last) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = first; i < std::min(last, run.rounds.size()); ++i) {
    const double value = column.value(run.rounds[i]);
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? kUnknown : sum / static_cast<double>(count);
}

std::size_t rounds_max(const std::vector<const RunRecord*>& runs) {
  std::size_t rounds = 0;
  for (const RunRecord* run : runs) rounds = std::max(rounds, run->rounds.size());
  return rounds;
}

}  // namespace

std::span<const RoundColumn> round_columns() {
  using Round = const RoundRecord&;
  static const std::vector<RoundColumn> columns = {
      {"round_ms", {"Round time", "ms"}, [](Round r) { return ms(r.end_ns - r.first_submit_ns); }},
      {"call_ms_max", {"Longest call", "ms"}, [](Round r) { return ms(r.call_ns_max); }},
      {"call_ms_median", {"Median call", "ms"}, [](Round r) { return ms(r.call_ns_median); }},
      {"missing", {"Data missing at the end", "%"}, [](Round r) { return missing(r, r.arrived); }},
      {"missing_first_pass",
       {"Data lost on the first pass", "%"},
       [](Round r) { return missing(r, r.arrived_first); }},
      {"nmse", {"Error of the result (NMSE)", ""}, nmse},
      {"loss", {"Objective of the workload", ""}, [](Round r) { return known(r.loss); }},
      {"drift_pair",
       {"Drift of two replicas (mean square)", ""},
       [](Round r) { return known(r.drift_pair); }},
      {"contributors_mean",
       {"Contributions in a result, mean", ""},
       [](Round r) { return known(r.contributors_mean); }},
      {"deadline_cuts",
       {"Calls cut at the deadline", ""},
       [](Round r) { return static_cast<double>(r.deadline_cuts); }},
      {"failed_calls",
       {"Failed calls", ""},
       [](Round r) { return static_cast<double>(r.failed_calls); }},
      {"live_ranks", {"Live ranks", ""}, [](Round r) { return static_cast<double>(r.live_ranks); }},
  };
  return columns;
}

const RoundColumn* find_round_column(std::string_view name) {
  for (const RoundColumn& column : round_columns()) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

std::size_t rounds_per_point(const std::vector<const RunRecord*>& runs) {
  return std::max<std::size_t>(1, (rounds_max(runs) + kPointsMax - 1) / kPointsMax);
}

Series over_rounds(const std::string& name, const std::vector<const RunRecord*>& runs,
                   const RoundColumn& column) {
  Series series{name, {}, {}, {}};
  const std::size_t step = rounds_per_point(runs);
  const std::size_t rounds = rounds_max(runs);
  for (std::size_t first = 0; first < rounds; first += step) {
    const std::size_t last = std::min(first + step, rounds);
    std::vector<double> values;
    for (const RunRecord* run : runs) values.push_back(mean_of(*run, column, first, last));
    const Spread spread = spread_of(values);
    if (spread.count == 0) continue;
    series.x.push_back(static_cast<double>(first + last - 1) / 2);
    series.y.push_back(spread.mean);
    series.error.push_back(spread.error);
  }
  return series;
}

}  // namespace leeway::sim
