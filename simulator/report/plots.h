// The pictures that a scenario asks for: Report.plot.
//
// x is a swept field, a measure, or "round"; y and also_y are measures, or for x "round" names of
// round_column.h; `by` are swept fields. Measures also exist as "pooled.round_ms.p99" (p50, p90,
// p99, p99.9; round_ms and call_ms): of all seeds' records together, without an error.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/cell_summary.h"
#include "report/chart.h"
#include "scenario.pb.h"

namespace leeway::sim {

// Error bars are standard errors over the runs of a point. Cells that differ in nothing that the
// picture shows are put together, and the note says so. A field that --set has fixed is not swept
// any more: `by` leaves it out, and as x it gives no picture (no series).
Chart draw_plot(const scenario::Report::Plot& plot, std::span<const CellSummary> cells);

// The swept fields, in file order.
std::vector<std::string> swept_fields(std::span<const CellSummary> cells);

}  // namespace leeway::sim
