// Writes report.html, a single page that loads nothing from elsewhere.
#include <algorithm>
#include <array>
#include <span>

#include "report/asset_text.h"
#include "report/cell_summary.h"
#include "report/chart.h"
#include "report/default_plots.h"
#include "report/html_text.h"
#include "report/number_text.h"
#include "report/plots.h"
#include "report/report.h"
#include "report/tables.h"

namespace leeway::sim {
namespace {

// The content security policy stops browsers from loading anything, even if a text on the page asks
// for it.
constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
)";

struct Totals {
  std::uint64_t runs = 0;
  std::uint64_t rounds = 0;
  std::uint64_t packets = 0;
  std::uint64_t events = 0;
  std::uint64_t failed_calls = 0;
  double simulated_ms = 0;
  std::vector<std::uint64_t> seeds;  // ascending, each once
};

Totals totals_of(std::span<const CellSummary> cells) {
  Totals totals;
  for (const CellSummary& cell : cells) {
    totals.runs += cell.runs.size();
    totals.rounds += cell.rounds;
    totals.packets += cell.packets;
    totals.events += cell.events;
    totals.simulated_ms += static_cast<double>(cell.simulated_ns) / 1e6;
    for (const RunRecord* run : cell.runs) {
      totals.seeds.push_back(run->seed);
      for (const RoundRecord& round : run->rounds) totals.failed_calls += round.failed_calls;
    }
  }
  std::sort(totals.seeds.begin(), totals.seeds.end());
  totals.seeds.erase(std::unique(totals.seeds.begin(), totals.seeds.end()), totals.seeds.end());
  return totals;
}

// Returns a short list of the seeds: "1–20", "1, 5, 9".
std::string seeds_text(const std::vector<std::uint64_t>& seeds) {
  if (seeds.empty()) return "none";
  const std::string first = std::to_string(seeds.front());
  if (seeds.size() == 1) return first;
  const std::string last = std::to_string(seeds.back());
  const bool dense = seeds.back() - seeds.front() == seeds.size() - 1;
  if (dense) return first + "–" + last;
  return std::to_string(seeds.size()) + " from " + first + " to " + last;
}

std::string duration_text(double milliseconds) {
  if (milliseconds < 1000) return short_text(milliseconds) + " ms";
  if (milliseconds < 120e3) return short_text(milliseconds / 1e3) + " s";
  if (milliseconds < 7200e3) return short_text(milliseconds / 60e3) + " min";
  return short_text(milliseconds / 3600e3) + " h";
}

std::string fact(std::string_view name, std::string_view value, bool bad = false) {
  return "<div><dt>" + escape(name) + "</dt><dd" + (bad ? " class=\"bad\"" : "") + ">" +
         escape(value) + "</dd></div>\n";
}

std::string facts(const ReportInput& input, const Totals& totals, std::size_t cells) {
  std::string text = "<dl class=\"facts\">\n";
  if (cells > 1) text += fact("Cells", count_text(cells));
  text += fact(totals.seeds.size() == 1 ? "Seed" : "Seeds", seeds_text(totals.seeds));
  text += fact("Runs", count_text(totals.runs));
  text += fact("Rounds", count_text(totals.rounds));
  text += fact("Failed calls", count_text(totals.failed_calls), totals.failed_calls > 0);
  text += fact("Simulated time", duration_text(totals.simulated_ms));
  text += fact("Packets simulated", count_text(totals.packets));
  text += fact("Events", count_text(totals.events));
  text += fact("Trace hash", hash_text(trace_hash_of(input.cells)));
  return text + "</dl>\n";
}

std::string verdict_line(const std::string& failure, std::span<const CellSummary> cells) {
  std::string failed = failure;
  std::array<std::size_t, 4> verdicts{};
  for (const CheckSummary& check : all_checks(cells)) {
    ++verdicts[static_cast<std::size_t>(check.verdict)];
    if (check.verdict != Verdict::failed) continue;
    failed += (failed.empty() ? "" : "; ") + check.id + " (" + check.title + ")";
  }
  const auto count = [&](Verdict verdict) { return verdicts[static_cast<std::size_t>(verdict)]; };
  if (!failed.empty()) {
    return "<p class=\"verdict failed\"><strong>Failed:</strong> " + escape(failed) + "</p>\n";
  }
  const std::size_t passed = count(Verdict::passed);
  if (passed == 0) return "<p class=\"verdict skipped\">No invariant was checked.</p>\n";
  std::string text = "<p class=\"verdict passed\"><strong>All checkers passed:</strong> " +
                     std::to_string(passed) + (passed == 1 ? " invariant" : " invariants") +
                     " held in every run";
  if (const std::size_t skipped = count(Verdict::skipped); skipped > 0) {
    text += ", " + std::to_string(skipped) + " skipped";
  }
  if (const std::size_t other = count(Verdict::not_applicable); other > 0) {
    text += ", " + std::to_string(other) + (other == 1 ? " does" : " do") + " not apply";
  }
  return text + ".</p>\n";
}

std::vector<Chart> charts_of(const ReportInput& input, std::span<const CellSummary> cells) {
  std::vector<Chart> charts;
  for (const scenario::Report::Plot& plot : input.scenario.report().plot()) {
    Chart chart = draw_plot(plot, cells);
    if (!chart.series.empty()) charts.push_back(std::move(chart));
  }
  if (!charts.empty() || cells.empty()) return charts;
  return cells.size() > 1 ? sweep_charts(cells) : cell_charts(cells.front());
}

std::string figures(const std::vector<Chart>& charts, bool several_seeds) {
  if (charts.empty()) return {};
  std::string text =
      "<section>\n<h2>Plots</h2>\n<noscript><p>Plots need JavaScript. All numbers are in the "
      "tables below and in summary.json.</p></noscript>\n<div class=\"charts\">\n";
  for (const Chart& chart : charts) {
    text += "<figure>\n<figcaption>" + escape(chart.title) + "</figcaption>\n";
    text += "<div class=\"plot\"><canvas role=\"img\" aria-label=\"" + escape(chart.title) +
            "\"></canvas></div>\n";
    if (!chart.note.empty()) text += "<p class=\"note\">" + escape(chart.note) + "</p>\n";
    text += "<details><summary>Numbers</summary></details>\n</figure>\n";
  }
  text += "</div>\n";
  if (several_seeds)
    text += "<p class=\"note\">Bars and bands are ± one standard error over seeds.</p>\n";
  return text + "</section>\n";
}

std::string results(std::span<const CellSummary> cells, bool several_seeds) {
  if (cells.empty()) return "<section><p>No run was finished.</p></section>\n";
  const std::string error =
      several_seeds ? "<p class=\"note\">Mean ± standard error over seeds.</p>\n" : "";
  std::string text = "<section>\n<h2>Results</h2>\n" + error;
  if (cells.size() > 1) return text + sweep_table(cells) + "</section>\n";
  text += measure_table(cells.front());
  text += "<h3>All seeds' records together</h3>\n" + percentile_table(cells.front());
  return text + "</section>\n";
}

std::string section(std::string_view title, const std::string& body) {
  return body.empty() ? body : "<section>\n" + element("h2", title) + body + "</section>\n";
}

std::string header(const ReportInput& input, std::span<const CellSummary> cells) {
  const std::string& name = input.scenario.name();
  std::string text = "<header>\n" + element("h1", name.empty() ? "Simulation" : name);
  if (!input.scenario.description().empty()) text += element("p", input.scenario.description());
  text += verdict_line(input.failure, cells);
  if (!input.complete) {
    text +=
        "<p class=\"verdict skipped\"><strong>Not complete:</strong> stopped before all runs "
        "were done. This page holds what was finished.</p>\n";
  }
  return text + facts(input, totals_of(cells), cells.size()) + "</header>\n";
}

std::string repeat(const ReportInput& input) {
  if (input.command.empty()) return {};
  return "<p>The same scenario and seed give the same trace hash on every machine.</p>\n<pre>" +
         escape(input.command) + "</pre>\n";
}

}  // namespace

std::string report_html(const ReportInput& input) {
  const std::vector<CellSummary> cells = summarize(input.cells);
  const std::vector<Chart> charts = charts_of(input, cells);
  const bool several_seeds = totals_of(cells).seeds.size() > 1;
  std::string page(kHead);
  page += element("title", input.scenario.name() + " – leeway sim");
  page.append("<style>\n").append(asset::page_css()).append("</style>\n</head>\n<body>\n<main>\n");
  page += header(input, cells);
  page += figures(charts, several_seeds);
  page += results(cells, several_seeds);
  page += section("Checkers", check_table(cells));
  page += section("Busiest and lossiest links", link_table(cells));
  page += section("Scenario", "<pre>" + escape(input.scenario_text) + "</pre>\n");
  page += section("Repeat it", repeat(input));
  page += "</main>\n" + element("footer", "leeway " + input.version);
  page += "<script type=\"application/json\" id=\"charts\">" + charts_json(charts) + "</script>\n";
  page.append("<script>\n").append(asset::chart_js()).append("</script>\n");
  page.append("<script>\n").append(asset::page_js()).append("</script>\n</body>\n</html>\n");
  return page;
}

}  // namespace leeway::sim
