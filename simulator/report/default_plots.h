// Pictures for a scenario that asks for none.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/cell_summary.h"
#include "report/chart.h"

namespace leeway::sim {

// The measures that tell most, in falling order of importance: columns of the sweep's table.
std::vector<std::string> main_measures(std::span<const CellSummary> cells);

// Charts of the main measures over the first swept field with numbers, by another swept field.
std::vector<Chart> sweep_charts(std::span<const CellSummary> cells);

// Charts of one cell: its rounds in time, its links, its distribution of round times.
std::vector<Chart> cell_charts(const CellSummary& cell);

}  // namespace leeway::sim
