// A cell's runs put together, as summary.json and the page show them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/cell_record.h"
#include "report/statistics.h"

namespace leeway::sim {

struct MeasureSummary {
  std::string name;
  Spread spread;  // over seeds
};

// One invariant over several runs. It failed if it failed in any run; otherwise it passed if it
// passed in any run.
struct CheckSummary {
  std::string id;
  std::string title;
  Verdict verdict = Verdict::not_applicable;
  std::uint64_t checked = 0;
  std::uint64_t failures = 0;
  std::uint64_t failed_runs = 0;
  // text of the first failed run; without one, why the invariant was skipped or does not apply
  std::string first_failure;
  std::uint64_t seed = 0;  // seed of the first failed run
  std::size_t cell = 0;
};

// One link over the seeds of a cell. Counters are sums, except that queue_bytes_max is the maximum.
struct LinkSummary {
  std::string name;
  LinkCounters counters;
  double utilisation = 0;  // mean

  std::uint64_t offered() const;
  std::uint64_t lost() const;
  double lost_share() const;
  std::uint64_t lost_in_queue() const;
};

struct CellSummary {
  const CellRecord* cell = nullptr;
  std::vector<const RunRecord*> runs;  // by seed
  std::vector<MeasureSummary> measures;
  Percentiles round_ms;
  Percentiles call_ms;
  std::vector<CheckSummary> checks;
  NetworkCounters network;
  std::uint64_t rounds = 0;
  std::uint64_t packets = 0;
  std::uint64_t events = 0;
  std::int64_t simulated_ns = 0;

  bool passed() const;
  const Spread* find(std::string_view measure) const;
  // Returns the value of a swept field in this cell, as text. Null if the field is not swept, or
  // the cell's endpoint does not use it.
  const std::string* setting(std::string_view field) const;
  std::vector<LinkSummary> links() const;
};

// The runs of a cell by seed.
std::vector<const RunRecord*> runs_by_seed(const CellRecord& cell);
// Returns the cells that have a finished run, sorted by index.
std::vector<const CellRecord*> cells_by_index(std::span<const CellRecord> cells);

// `cells` must outlive the result.
std::vector<CellSummary> summarize(std::span<const CellRecord> cells);
// Merges the checks of all cells.
std::vector<CheckSummary> all_checks(std::span<const CellSummary> cells);
// Names of all cells' measures, in order of first appearance.
std::vector<std::string> measure_names(std::span<const CellSummary> cells);

const char* to_text(Verdict verdict);

}  // namespace leeway::sim
