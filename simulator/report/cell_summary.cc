#include "report/cell_summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "engine/trace_hash.h"
#include "report/report.h"

namespace leeway::sim {
namespace {

template <typename T>
T* find_named(std::vector<T>& list, std::string_view name, std::string T::*key) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const T& item) { return item.*key == name; });
  return found == list.end() ? nullptr : &*found;
}

int weight(Verdict verdict) {
  switch (verdict) {
    case Verdict::failed:
      return 3;
    case Verdict::passed:
      return 2;
    case Verdict::skipped:
      return 1;
    case Verdict::not_applicable:
      return 0;
  }
  return 0;
}

// Merges a check into `checks`. Calls come in the order of cells and seeds, so the first failure
// stays.
void merge(std::vector<CheckSummary>& checks, const CheckSummary& more) {
  CheckSummary* check = find_named(checks, more.id, &CheckSummary::id);
  if (check == nullptr) {
    checks.push_back(more);
    return;
  }
  if (weight(more.verdict) > weight(check->verdict)) {
    check->verdict = more.verdict;
    check->first_failure = more.first_failure;
    check->seed = more.seed;
    check->cell = more.cell;
  }
  check->checked += more.checked;
  check->failures += more.failures;
  check->failed_runs += more.failed_runs;
}

CheckSummary of_run(const CheckRecord& check, const RunRecord& run, std::size_t cell) {
  const std::uint64_t failed = check.verdict == Verdict::failed ? 1 : 0;
  return {check.id, check.title,         check.verdict, check.checked, check.failures,
          failed,   check.first_failure, run.seed,      cell};
}

template <std::size_t N>
void add(std::array<std::uint64_t, N>& sum, const std::array<std::uint64_t, N>& more) {
  for (std::size_t i = 0; i < N; ++i) sum[i] += more[i];
}

void add(LinkCounters& sum, const LinkCounters& more) {
  add(sum.offered, more.offered);
  add(sum.passed, more.passed);
  add(sum.lost, more.lost);
  add(sum.copied, more.copied);
  sum.queue_full += more.queue_full;
  sum.queue_early += more.queue_early;
  sum.marked += more.marked;
  sum.trimmed += more.trimmed;
  sum.corrupted += more.corrupted;
  sum.reordered += more.reordered;
  sum.bytes_passed += more.bytes_passed;
  sum.queue_bytes_max = std::max(sum.queue_bytes_max, more.queue_bytes_max);
}

void add_totals(CellSummary& summary, const RunRecord& run) {
  add(summary.network.sent, run.network.sent);
  add(summary.network.copied, run.network.copied);
  add(summary.network.delivered, run.network.delivered);
  add(summary.network.lost, run.network.lost);
  summary.rounds += run.rounds.size();
  summary.packets += run.packets;
  summary.events += run.events;
  summary.simulated_ns += run.simulated_ns;
}

std::vector<MeasureSummary> measures_of(const std::vector<const RunRecord*>& runs) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<double>> values;
  for (const RunRecord* run : runs) {
    for (const Measure& measure : run->measures) {
      std::vector<double>& list = values[measure.name];
      if (list.empty()) names.push_back(measure.name);
      list.push_back(measure.value);
    }
  }
  std::vector<MeasureSummary> measures;
  for (const std::string& name : names) measures.push_back({name, spread_of(values[name])});
  return measures;
}

Percentiles pooled(const std::vector<const RunRecord*>& runs,
                   std::vector<double> RunRecord::*values) {
  std::vector<double> all;
  for (const RunRecord* run : runs) {
    all.insert(all.end(), (run->*values).begin(), (run->*values).end());
  }
  return percentiles_of(std::move(all));
}

CellSummary summarize_cell(const CellRecord& cell) {
  CellSummary summary;
  summary.cell = &cell;
  summary.runs = runs_by_seed(cell);
  summary.measures = measures_of(summary.runs);
  summary.round_ms = pooled(summary.runs, &RunRecord::round_ms);
  summary.call_ms = pooled(summary.runs, &RunRecord::call_ms);
  for (const RunRecord* run : summary.runs) {
    add_totals(summary, *run);
    for (const CheckRecord& check : run->checks) {
      merge(summary.checks, of_run(check, *run, cell.index));
    }
  }
  return summary;
}

}  // namespace

std::uint64_t LinkSummary::offered() const {
  return std::accumulate(counters.offered.begin(), counters.offered.end(), std::uint64_t{0});
}

std::uint64_t LinkSummary::lost() const {
  return std::accumulate(counters.lost.begin(), counters.lost.end(), std::uint64_t{0});
}

double LinkSummary::lost_share() const {
  return offered() == 0 ? kUnknown : static_cast<double>(lost()) / static_cast<double>(offered());
}

std::uint64_t LinkSummary::lost_in_queue() const {
  return std::min(lost(), counters.queue_full + counters.queue_early);
}

bool CellSummary::passed() const {
  return std::all_of(runs.begin(), runs.end(), [](const RunRecord* run) { return run->passed(); });
}

const Spread* CellSummary::find(std::string_view measure) const {
  for (const MeasureSummary& item : measures) {
    if (item.name == measure) return &item.spread;
  }
  return nullptr;
}

const std::string* CellSummary::setting(std::string_view field) const {
  for (const scenario::Setting& setting : cell->settings) {
    if (setting.field == field) return setting.acts ? &setting.value : nullptr;
  }
  return nullptr;
}

std::vector<LinkSummary> CellSummary::links() const {
  std::vector<LinkSummary> links;
  std::map<std::string, std::size_t> places;
  for (const RunRecord* run : runs) {
    for (const LinkRecord& record : run->links) {
      const auto [place, fresh] = places.try_emplace(record.name, links.size());
      if (fresh) links.push_back({record.name, {}, 0});
      LinkSummary& link = links[place->second];
      add(link.counters, record.counters);
      link.utilisation += record.utilisation / static_cast<double>(runs.size());
    }
  }
  return links;
}

std::vector<const RunRecord*> runs_by_seed(const CellRecord& cell) {
  std::vector<const RunRecord*> runs;
  for (const RunRecord& run : cell.runs) runs.push_back(&run);
  std::stable_sort(runs.begin(), runs.end(),
                   [](const RunRecord* a, const RunRecord* b) { return a->seed < b->seed; });
  return runs;
}

std::vector<const CellRecord*> cells_by_index(std::span<const CellRecord> cells) {
  std::vector<const CellRecord*> ordered;
  for (const CellRecord& cell : cells) {
    if (!cell.runs.empty()) ordered.push_back(&cell);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const CellRecord* a, const CellRecord* b) { return a->index < b->index; });
  return ordered;
}

std::vector<CellSummary> summarize(std::span<const CellRecord> cells) {
  std::vector<CellSummary> summaries;
  for (const CellRecord* cell : cells_by_index(cells)) summaries.push_back(summarize_cell(*cell));
  return summaries;
}

std::vector<CheckSummary> all_checks(std::span<const CellSummary> cells) {
  std::vector<CheckSummary> checks;
  for (const CellSummary& cell : cells) {
    for (const CheckSummary& check : cell.checks) merge(checks, check);
  }
  return checks;
}

std::vector<std::string> measure_names(std::span<const CellSummary> cells) {
  std::vector<std::string> names;
  for (const CellSummary& cell : cells) {
    for (const MeasureSummary& measure : cell.measures) {
      if (std::find(names.begin(), names.end(), measure.name) == names.end()) {
        names.push_back(measure.name);
      }
    }
  }
  return names;
}

const char* to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::failed:
      return "failed";
    case Verdict::skipped:
      return "skipped";
    case Verdict::not_applicable:
      return "not_applicable";
  }
  return "?";
}

std::uint64_t trace_hash_of(std::span<const CellRecord> cells) {
  TraceHash hash;
  for (const CellRecord* cell : cells_by_index(cells)) {
    for (const RunRecord* run : runs_by_seed(*cell)) hash.add_run(run->trace_hash);
  }
  return hash.value();
}

}  // namespace leeway::sim
