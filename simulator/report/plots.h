// Draws the pictures that a scenario defines in Report.plot.
//
// x is a swept field, a measure, or "round". y and also_y are measures; if x is "round", they are
// names from round_column.h. `by` lists swept fields. A name like "pooled.round_ms.p99" stands for
// a percentile (p50, p90, p99, p99.9) of round_ms or call_ms over the records of all seeds
// together, which has no error.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/cell_summary.h"
#include "report/chart.h"
#include "scenario.pb.h"

namespace leeway::sim {

// Error bars are standard errors over the runs of a point. Cells that differ only in fields that
// the picture does not show are averaged, and the note says so. A field that --set has fixed is not
// swept any more: in `by` it is ignored, and as x it gives a chart without series.
Chart draw_plot(const scenario::Report::Plot& plot, std::span<const CellSummary> cells);

// The swept fields, in file order.
std::vector<std::string> swept_fields(std::span<const CellSummary> cells);

}  // namespace leeway::sim
