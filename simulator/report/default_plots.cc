#include "report/default_plots.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "report/link_table.h"
#include "report/number_text.h"
#include "report/plot_names.h"
#include "report/plots.h"
#include "report/round_column.h"

namespace leeway::sim {
namespace {

constexpr std::array kPreferred = {"round_ms.p50", "round_ms.p99", "loss", "goodput_gbps",
                                   "error.nmse"};
constexpr std::string_view kFillsUp = "jain";
constexpr std::size_t kMeasuresMax = 6;
constexpr std::size_t kSweepCharts = 6;
// An axis is logarithmic if its largest value is at least this many times its smallest.
constexpr double kLogFrom = 50;
constexpr std::size_t kBarsMax = 12;

bool known_somewhere(std::span<const CellSummary> cells, std::string_view name) {
  return std::any_of(cells.begin(), cells.end(), [&](const CellSummary& cell) {
    const Spread* spread = cell.find(name);
    return spread != nullptr && spread->count > 0;
  });
}

bool is_number(std::span<const CellSummary> cells, const std::string& field) {
  return std::all_of(cells.begin(), cells.end(), [&](const CellSummary& cell) {
    const std::string* value = cell.setting(field);
    return value != nullptr && number_of(*value).has_value();
  });
}

bool wants_log(const std::vector<double>& values) {
  if (values.empty()) return false;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least > 0 && *most > *least * kLogFrom;
}

std::vector<double> all_values(std::span<const CellSummary> cells, const std::string& measure) {
  std::vector<double> values;
  for (const CellSummary& cell : cells) {
    const Spread* spread = cell.find(measure);
    if (spread != nullptr && spread->count > 0) values.push_back(spread->mean);
  }
  return values;
}

// Returns true if the field's values span orders of magnitude, because a linear axis would squeeze
// the small ones together.
bool field_wants_log(std::span<const CellSummary> cells, const std::string& field) {
  std::vector<double> values;
  if (!is_number(cells, field)) return false;
  for (const CellSummary& cell : cells) values.push_back(*number_of(*cell.setting(field)));
  return wants_log(values);
}

bool has_values(const Chart& chart) {
  for (const Series& series : chart.series) {
    if (std::any_of(series.y.begin(), series.y.end(), [](double y) { return y != 0; })) return true;
  }
  return false;
}

void add_if_drawn(std::vector<Chart>& charts, Chart chart) {
  if (has_values(chart)) charts.push_back(std::move(chart));
}

Chart rounds_chart(const CellSummary& cell, std::string title,
                   const std::vector<std::string_view>& columns) {
  Chart chart;
  chart.title = std::move(title);
  chart.x.title = "Round";
  std::vector<double> values;
  for (const std::string_view name : columns) {
    const RoundColumn* column = find_round_column(name);
    const std::string curve = columns.size() > 1 ? column->label.text : std::string();
    Series series = over_rounds(curve, cell.runs, *column);
    if (series.x.empty()) continue;
    values.insert(values.end(), series.y.begin(), series.y.end());
    chart.y.title =
        columns.size() > 1 ? "Data packets (" + column->label.unit + ")" : title_of(column->label);
    chart.series.push_back(std::move(series));
  }
  chart.y.log = wants_log(values);
  const std::size_t step = rounds_per_point(cell.runs);
  if (step > 1) chart.note = "A point is the mean of " + std::to_string(step) + " rounds.";
  return chart;
}

Chart round_time_chart(const CellSummary& cell) {
  Chart chart = rounds_chart(cell, "Round time", {"round_ms"});
  chart.marks = {{cell.round_ms.p50, "median"}, {cell.round_ms.p99, "p99"}};
  if (cell.round_ms.count == 0) chart.marks.clear();
  return chart;
}

std::vector<double> sorted_round_times(const CellSummary& cell) {
  std::vector<double> values;
  for (const RunRecord* run : cell.runs) {
    for (const double value : run->round_ms) {
      if (std::isfinite(value)) values.push_back(value);
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

// Draws the distribution of round times, in bins of equal width, or of equal ratio if values span
// orders of magnitude.
Chart histogram(const CellSummary& cell) {
  const std::vector<double> values = sorted_round_times(cell);
  Chart chart;
  if (values.size() < 8 || values.front() >= values.back()) return chart;
  chart.kind = Chart::Kind::histogram;
  chart.title = "Distribution of round times";
  chart.x = {"Round time (ms)", wants_log(values), {}};
  chart.y.title = "Rounds";
  const auto bins = static_cast<std::size_t>(
      std::clamp(2 * std::sqrt(static_cast<double>(values.size())), 10.0, 60.0));
  const auto edge = [&](std::size_t i) {
    const double share = static_cast<double>(i) / static_cast<double>(bins);
    if (i == bins) return values.back();
    return chart.x.log ? values.front() * std::pow(values.back() / values.front(), share)
                       : values.front() + share * (values.back() - values.front());
  };
  Series series;
  auto from = values.begin();
  for (std::size_t i = 0; i < bins; ++i) {
    const auto to =
        i + 1 == bins ? values.end() : std::lower_bound(from, values.end(), edge(i + 1));
    series.x.push_back(edge(i));
    series.y.push_back(static_cast<double>(to - from));
    from = to;
  }
  series.x.push_back(values.back());
  series.y.push_back(0);
  chart.series = {std::move(series)};
  return chart;
}

Chart ranking(std::string title, std::string unit, const std::vector<LinkSummary>& links) {
  Chart chart;
  chart.kind = Chart::Kind::ranking;
  chart.title = std::move(title);
  chart.y.title = std::move(unit);
  for (const LinkSummary& link : links) chart.x.categories.push_back(link.name);
  return chart;
}

Chart utilisation_chart(const CellSummary& cell) {
  const std::vector<LinkSummary> links = busiest(cell.links(), kBarsMax);
  Chart chart = ranking("Busiest links", "Utilisation (%)", links);
  Series series;
  for (const LinkSummary& link : links) {
    series.x.push_back(static_cast<double>(series.x.size()));
    series.y.push_back(100 * link.utilisation);
  }
  chart.series = {std::move(series)};
  return chart;
}

Chart losses_chart(const CellSummary& cell) {
  const std::vector<LinkSummary> links = lossiest(cell.links(), kBarsMax);
  Chart chart = ranking("Lossiest links", "Packets lost (%)", links);
  Series queue{"in its queue", {}, {}, {}};
  Series line{"by its loss model", {}, {}, {}};
  for (const LinkSummary& link : links) {
    const double percent = 100 / static_cast<double>(link.offered());
    const std::uint64_t queued = link.lost_in_queue();
    for (Series* series : {&queue, &line}) {
      series->x.push_back(static_cast<double>(series->x.size()));
    }
    queue.y.push_back(percent * static_cast<double>(queued));
    line.y.push_back(percent * static_cast<double>(link.lost() - queued));
  }
  chart.series = {std::move(line), std::move(queue)};
  return chart;
}

}  // namespace

std::vector<std::string> main_measures(std::span<const CellSummary> cells) {
  std::vector<std::string> chosen;
  for (const char* name : kPreferred) {
    if (known_somewhere(cells, name)) chosen.emplace_back(name);
  }
  for (const std::string& name : measure_names(cells)) {
    const bool own = name.starts_with("workload.") || name.starts_with("drift.");
    if (own && chosen.size() < kMeasuresMax && known_somewhere(cells, name)) chosen.push_back(name);
  }
  if (chosen.size() < kMeasuresMax && known_somewhere(cells, kFillsUp)) {
    chosen.emplace_back(kFillsUp);
  }
  return chosen;
}

std::vector<Chart> sweep_charts(std::span<const CellSummary> cells) {
  std::vector<Chart> charts;
  const std::vector<std::string> fields = swept_fields(cells);
  if (fields.empty()) return charts;
  auto x = std::find_if(fields.begin(), fields.end(),
                        [&](const std::string& field) { return is_number(cells, field); });
  if (x == fields.end()) x = fields.begin();
  scenario::Report::Plot plot;
  plot.set_x(*x);
  plot.set_log_x(field_wants_log(cells, *x));
  if (fields.size() > 1) plot.add_by(x == fields.begin() ? fields[1] : fields[0]);
  for (const std::string& measure : main_measures(cells)) {
    if (charts.size() == kSweepCharts) break;
    plot.set_y(measure);
    plot.set_log_y(wants_log(all_values(cells, measure)));
    add_if_drawn(charts, draw_plot(plot, cells));
  }
  return charts;
}

std::vector<Chart> cell_charts(const CellSummary& cell) {
  std::vector<Chart> charts;
  add_if_drawn(charts, round_time_chart(cell));
  add_if_drawn(charts, histogram(cell));
  add_if_drawn(charts, rounds_chart(cell, "Lost data", {"missing_first_pass", "missing"}));
  add_if_drawn(charts, rounds_chart(cell, "Error of the result", {"nmse"}));
  add_if_drawn(charts, rounds_chart(cell, "Objective of the workload", {"loss"}));
  add_if_drawn(charts, rounds_chart(cell, "Drift of replicas", {"drift_pair"}));
  add_if_drawn(charts, rounds_chart(cell, "Calls cut at the deadline", {"deadline_cuts"}));
  add_if_drawn(charts, rounds_chart(cell, "Failed calls", {"failed_calls"}));
  add_if_drawn(charts, utilisation_chart(cell));
  add_if_drawn(charts, losses_chart(cell));
  return charts;
}

}  // namespace leeway::sim
