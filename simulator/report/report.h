// Makes the files that people and programs read from finished runs. Formats: README.md beside this.
//
// All functions are pure: they return texts, and the same records give the same bytes. Cells
// without a finished run are left out of every output.
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

// A header line, then a line per (cell, seed, round) and per (cell, seed, link). Swept fields lead.
std::string rounds_csv(std::span<const CellRecord> cells);
std::string links_csv(std::span<const CellRecord> cells);

// One page that refers to nothing outside it.
std::string report_html(const ReportInput& input);

// Hash over the hashes of all runs, in the order of the grid and of the seeds.
std::uint64_t trace_hash_of(std::span<const CellRecord> cells);

// Checks that every plot that the scenario asks for names swept fields and measures that exist.
// `first` is any run of it: measures are known once something has run. An error names the plot, the
// name and the nearest valid one.
Status check_plots(const scenario::Scenario& scenario, const RunRecord& first);

}  // namespace leeway::sim
