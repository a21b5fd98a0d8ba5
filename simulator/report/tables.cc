#include "report/tables.h"

#include <algorithm>

#include "report/default_plots.h"
#include "report/html_text.h"
#include "report/label.h"
#include "report/link_table.h"
#include "report/number_text.h"
#include "report/plots.h"

namespace leeway::sim {
namespace {

constexpr std::size_t kLinkRows = 8;  // rows for the busiest links, and for the lossiest
constexpr std::string_view kFailedCalls = "failed_calls";

std::string mean_text(const Spread& spread, double factor) {
  return short_text(spread.mean * factor, spread.error * factor);
}

void add_settings(HtmlTable& table, const CellSummary& cell) {
  for (const scenario::Setting& setting : cell.cell->settings) {
    if (!setting.acts) {
      table.name("–");
    } else if (number_of(setting.value) && setting.name.empty()) {
      table.number(short_text(*number_of(setting.value) * label_of(setting).factor));
    } else {
      table.name(name_of(setting));
    }
  }
}

void add_setting_heads(HtmlTable& table, std::span<const CellSummary> cells) {
  if (cells.empty()) return;
  for (const scenario::Setting& setting : cells.front().cell->settings) {
    const bool number = number_of(setting.value).has_value() && setting.name.empty();
    table.head(title_of(label_of(setting)), number);
  }
}

void add_percentiles(HtmlTable& table, const char* name, const Percentiles& values) {
  if (values.count == 0) return;
  table.begin_row();
  table.text(name);
  table.number(count_text(values.count));
  for (const double value :
       {values.mean, values.min, values.p50, values.p90, values.p99, values.p99_9, values.max}) {
    table.number(short_text(value));
  }
}

// Adds the number of failed calls, in red if above 0; "–" if it is not known.
void add_failed_calls(HtmlTable& table, const CellSummary& cell) {
  const Spread* failed = cell.find(kFailedCalls);
  if (failed == nullptr || failed->count == 0) return table.number("–");
  const std::string text = mean_text(*failed, 1);
  failed->max > 0 ? table.bad_number(text) : table.number(text);
}

const char* spoken(Verdict verdict) {
  return verdict == Verdict::not_applicable ? "does not apply" : to_text(verdict);
}

std::string failure_text(const CheckSummary& check, std::span<const CellSummary> cells) {
  if (check.verdict != Verdict::failed) return check.first_failure;
  std::string where = "seed " + std::to_string(check.seed);
  for (const CellSummary& cell : cells) {
    if (cell.cell->index != check.cell || cell.cell->settings.empty()) continue;
    where += ", " + to_string(cell.cell->settings);
  }
  return where + ": " + check.first_failure;
}

}  // namespace

std::string sweep_table(std::span<const CellSummary> cells) {
  const std::vector<std::string> measures = main_measures(cells);
  HtmlTable table("Cells of the sweep");
  add_setting_heads(table, cells);
  table.head("Seeds", true);
  for (const std::string& name : measures) table.head(title_of(label_of_measure(name)), true);
  table.head("Failed calls", true);
  table.head("Checks");
  for (const CellSummary& cell : cells.first(std::min(cells.size(), kSweepRows))) {
    table.begin_row();
    add_settings(table, cell);
    table.number(std::to_string(cell.runs.size()));
    for (const std::string& name : measures) {
      const Spread* spread = cell.find(name);
      table.number(spread == nullptr ? "–" : mean_text(*spread, label_of_measure(name).factor));
    }
    add_failed_calls(table, cell);
    const char* verdict = cell.passed() ? "passed" : "failed";
    table.badge(verdict, verdict);
  }
  std::string text = std::move(table).str();
  if (cells.size() > kSweepRows) {
    text += element("p", "The other " + std::to_string(cells.size() - kSweepRows) +
                             " cells are in summary.json.");
  }
  return text;
}

std::string measure_table(const CellSummary& cell) {
  HtmlTable table("Measures");
  for (const char* name : {"Measure", "Name"}) table.head(name);
  for (const char* name : {"Mean", "Least", "Most"}) table.head(name, true);
  for (const MeasureSummary& measure : cell.measures) {
    const Label label = label_of_measure(measure.name);
    table.begin_row();
    table.text(title_of(label));
    table.code(measure.name);
    if (measure.name == kFailedCalls) {
      add_failed_calls(table, cell);
    } else {
      table.number(mean_text(measure.spread, label.factor));
    }
    table.number(short_text(measure.spread.min * label.factor));
    table.number(short_text(measure.spread.max * label.factor));
  }
  return std::move(table).str();
}

std::string percentile_table(const CellSummary& cell) {
  HtmlTable table("Percentiles");
  table.head("ms");
  for (const char* name : {"Records", "Mean", "Least", "p50", "p90", "p99", "p99.9", "Most"}) {
    table.head(name, true);
  }
  add_percentiles(table, "Round time", cell.round_ms);
  add_percentiles(table, "Call time", cell.call_ms);
  return std::move(table).str();
}

std::string check_table(std::span<const CellSummary> cells) {
  HtmlTable table("Checkers");
  for (const char* name : {"Id", "Invariant", "Verdict"}) table.head(name);
  table.head("Checked", true);
  table.head("Failures", true);
  table.head("First failure, or why not checked");
  for (const CheckSummary& check : all_checks(cells)) {
    table.begin_row();
    table.code(check.id);
    table.text(check.title);
    table.badge(to_text(check.verdict), spoken(check.verdict));
    table.number(count_text(check.checked));
    table.number(count_text(check.failures));
    table.text(failure_text(check, cells));
  }
  return std::move(table).str();
}

std::string link_table(std::span<const CellSummary> cells) {
  const std::vector<LinkRow> rows = noteworthy_links(cells, kLinkRows);
  if (rows.empty()) return {};
  HtmlTable table("Links");
  table.head("Link");
  for (const char* name : {"Packets", "Lost", "Lost (%)", "Queue full", "Dropped early", "Marked",
                           "Utilisation (%)", "Longest queue (bytes)"}) {
    table.head(name, true);
  }
  if (cells.size() > 1) table.head("In the cell with");
  for (const LinkRow& row : rows) {
    const LinkSummary& link = row.link;
    table.begin_row();
    table.name(link.name);
    table.number(count_text(link.offered()));
    table.number(count_text(link.lost()));
    table.number(short_text(100 * link.lost_share()));
    table.number(count_text(link.counters.queue_full));
    table.number(count_text(link.counters.queue_early));
    table.number(count_text(link.counters.marked));
    table.number(link.utilisation > 0 ? short_text(100 * link.utilisation) : "–");
    table.number(count_text(link.counters.queue_bytes_max));
    if (cells.size() > 1) table.text(to_string(row.cell->cell->settings));
  }
  return std::move(table).str();
}

}  // namespace leeway::sim
