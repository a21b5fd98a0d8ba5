// Turns finished runs into the files that people and programs read. Formats: README.md in this
// folder.
//
// All functions are pure: the same records give the same bytes. Cells without a finished run are
// left out of every output.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "leeway/status.h"
#include "report/cell_record.h"
#include "report/number_text.h"  // hash_text

namespace leeway::sim {

inline constexpr int kSummaryFormat = 1;

// One object per cell: settings, measures over seeds, pooled percentiles, checks, trace hashes.
std::string summary_json(const ReportInput& input);

// Return a header line, then one line for each round, or each link, of every run. The swept fields
// are the first columns.
std::string rounds_csv(std::span<const CellRecord> cells);
std::string links_csv(std::span<const CellRecord> cells);

// One page that refers to nothing outside it.
std::string report_html(const ReportInput& input);

// Returns a hash over the trace hashes of all runs, in the order of cells and seeds.
std::uint64_t trace_hash_of(std::span<const CellRecord> cells);

// Checks that the scenario's plots name only swept fields and measures that exist. `first` is any
// run of the scenario, because measures are known only after a run. An error names the plot, the
// wrong name and the nearest valid one.
Status check_plots(const scenario::Scenario& scenario, const RunRecord& first);

}  // namespace leeway::sim
