// The table that ends a command: one row for each cell, with its settings and the measures of its
// runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/cell_record.h"
#include "report/cell_summary.h"

namespace leeway::tools::simulation {

// The measures that the table shows: those that the scenario's plots draw, and the usual ones, if
// some cell has them.
std::vector<std::string> shown_measures(const sim::scenario::Scenario& scenario,
                                        std::span<const sim::CellSummary> cells);

// Measures are "mean +- standard error" over seeds, or the value alone if there is one seed. Cells
// without a finished run are left out. `colour`: rows of cells with failed calls are red.
std::string result_table(const sim::scenario::Scenario& scenario,
                         std::span<const sim::CellRecord> cells, bool colour = false);

}  // namespace leeway::tools::simulation
