// The tables of the report page, as HTML.
#pragma once

#include <span>
#include <string>

#include "report/cell_summary.h"

namespace leeway::sim {

// Table of cells and main measures. It has at most kSweepRows rows, and says how many further cells
// there are.
inline constexpr std::size_t kSweepRows = 512;
std::string sweep_table(std::span<const CellSummary> cells);

// Return all measures of one cell, and the percentiles of its records.
std::string measure_table(const CellSummary& cell);
std::string percentile_table(const CellSummary& cell);

std::string check_table(std::span<const CellSummary> cells);
// Returns an empty text if no packet came to any link.
std::string link_table(std::span<const CellSummary> cells);

}  // namespace leeway::sim
