// The table at the end of a command: a row for each cell, with its settings and its runs' measures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/cell_record.h"
#include "report/cell_summary.h"

namespace leeway::tools::simulation {

// Returns the measures for the table: those that the scenario's plots show, and the usual ones that
// some cell has.
std::vector<std::string> shown_measures(const sim::scenario::Scenario& scenario,
                                        std::span<const sim::CellSummary> cells);

// Makes the table. A measure is "mean +- standard error" over seeds, or a plain value for one seed.
// Cells without a finished run are left out. `colour` paints rows of cells with failed calls red.
std::string result_table(const sim::scenario::Scenario& scenario,
                         std::span<const sim::CellRecord> cells, bool colour = false);

}  // namespace leeway::tools::simulation
