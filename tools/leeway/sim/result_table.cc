#include "sim/result_table.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "codec/text_table.h"
#include "format.h"
#include "report/plot_names.h"

namespace leeway::tools::simulation {
namespace {

constexpr std::array<std::string_view, 7> kUsualMeasures = {
    "failed_calls", "round_ms.p50", "round_ms.p99", "loss",
    "goodput_gbps", "error.nmse",   "workload.bias"};

bool any_has(std::span<const sim::CellSummary> cells, std::string_view measure) {
  return std::any_of(cells.begin(), cells.end(), [measure](const sim::CellSummary& cell) {
    return cell.find(measure) != nullptr;
  });
}

std::string measure_cell(const sim::Spread* spread) {
  if (spread == nullptr || spread->count == 0) return "-";
  if (spread->count == 1) return format("%.4g", spread->mean);
  return format("%.4g +- %.2g", spread->mean, spread->error);
}

// Returns a column's title. A path is too wide for one line, so its last part goes to a second
// line.
std::string title_of(const sim::scenario::Setting& setting) {
  if (!setting.title.empty()) return setting.title;
  std::string title = setting.field;
  const std::size_t dot = title.rfind('.');
  if (dot != std::string::npos) title[dot] = '\n';
  return title;
}

std::string value_of(const sim::scenario::Setting& setting) {
  if (!setting.acts) return "-";
  return setting.name.empty() ? setting.value : setting.name;
}

bool has_failed_calls(const sim::CellSummary& summary) {
  const sim::Spread* failed = summary.find("failed_calls");
  return failed != nullptr && failed->max > 0;
}

// Paints the rows of cells with failed calls red. The last lines of the table are its rows, one for
// each cell.
std::string painted(const std::string& table, std::span<const sim::CellSummary> cells) {
  const auto lines = static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n'));
  std::string text;
  std::size_t begin = 0;
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t end = table.find('\n', begin);
    const std::size_t title_lines = lines - cells.size();
    const bool red = line >= title_lines && has_failed_calls(cells[line - title_lines]);
    const std::string row = table.substr(begin, end - begin);
    text += red ? "\x1b[31m" + row + "\x1b[0m\n" : row + "\n";
    begin = end + 1;
  }
  return text;
}

}  // namespace

std::vector<std::string> shown_measures(const sim::scenario::Scenario& scenario,
                                        std::span<const sim::CellSummary> cells) {
  std::vector<std::string> names;
  const auto consider = [&](const std::string& name) {
    const bool shown = std::find(names.begin(), names.end(), name) != names.end();
    if (!shown && any_has(cells, name)) names.push_back(name);
  };
  for (const auto& plot : scenario.report().plot()) {
    for (const std::string& name : sim::drawn_measures(plot)) consider(name);
  }
  for (const std::string_view name : kUsualMeasures) consider(std::string(name));
  return names;
}

std::string result_table(const sim::scenario::Scenario& scenario,
                         std::span<const sim::CellRecord> cells, bool colour) {
  const std::vector<sim::CellSummary> summaries = sim::summarize(cells);
  if (summaries.empty()) return {};
  std::vector<codecs::Column> columns;
  for (const auto& setting : summaries.front().cell->settings) {
    columns.push_back({title_of(setting)});
  }
  columns.push_back({"runs"});
  const std::vector<std::string> measures = shown_measures(scenario, summaries);
  for (const std::string& name : measures) columns.push_back({name});
  codecs::TextTable table(std::move(columns));
  for (const sim::CellSummary& summary : summaries) {
    std::vector<std::string> row;
    for (const auto& setting : summary.cell->settings) row.push_back(value_of(setting));
    row.push_back(std::to_string(summary.runs.size()));
    for (const std::string& name : measures) row.push_back(measure_cell(summary.find(name)));
    table.add_row(std::move(row));
  }
  return colour ? painted(table.text(), summaries) : table.text();
}

}  // namespace leeway::tools::simulation
