// Pictures for a scenario that asks for none.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/cell_summary.h"
#include "report/chart.h"

namespace leeway::sim {

// Returns the most important measures, most important first. They are the columns of the sweep's
// table.
std::vector<std::string> main_measures(std::span<const CellSummary> cells);

// Draws the main measures. The first swept field with numbers is x; another swept field gives the
// curves.
std::vector<Chart> sweep_charts(std::span<const CellSummary> cells);

// Draws one cell: its rounds over time, its links, and the distribution of its round times.
std::vector<Chart> cell_charts(const CellSummary& cell);

}  // namespace leeway::sim
