#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/default_plots.h"
#include "report/html_text.h"
#include "report/label.h"
#include "report/link_table.h"
#include "report/report.h"
#include "unit/sim_report/made_up_runs.h"

namespace leeway::sim {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

std::string between(const std::string& text, std::string_view from, std::string_view to) {
  const std::size_t begin = text.find(from) + from.size();
  return text.substr(begin, text.find(to, begin) - begin);
}

Json charts_in(const std::string& page) {
  return Json::parse(between(page, "id=\"charts\">", "</script>"));
}

TEST(ReportHtml, PlotsThatTheScenarioAsksFor) {
  const std::string page = report_html(made_up_sweep());
  const Json charts = charts_in(page);
  ASSERT_EQ(charts.size(), 3u);
  EXPECT_EQ(count_of(page, "<canvas"), 3u);
  EXPECT_EQ(charts[0]["y"]["log"], true);
  EXPECT_EQ(charts[0]["series"].size(), 3u);
  EXPECT_EQ(charts[0]["series"][2]["name"], "symmetric_ratio");
  EXPECT_EQ(charts[0]["series"][2]["x"], Json({0, 10, 20, 30, 40}));
  EXPECT_FALSE(charts[0]["series"][2].contains("stroke"));
  ASSERT_EQ(charts[1]["series"].size(), 6u);  // three estimators, two measures
  EXPECT_EQ(charts[1]["series"][5]["name"], "symmetric_ratio, p99");
  EXPECT_EQ(charts[1]["series"][5]["stroke"], Json({{"color", 2}, {"dash", 1}}));
}

TEST(ReportHtml, EveryCellHasARow) {
  const std::string page = report_html(made_up_sweep());
  const std::string results = between(page, "<h2>Results</h2>", "<h2>Checkers</h2>");
  EXPECT_EQ(count_of(results, "<tr>"), 1u + 15);
  EXPECT_EQ(count_of(results, "badge passed"), 15u);
  EXPECT_THAT(results, HasSubstr("± "));
}

TEST(ReportHtml, TextsNeverBecomeMarkup) {
  ReportInput input = made_up_single(8, 1);
  const std::string bad = "</script><script>alert('x')</script><img src=x onerror=\"alert(2)\">";
  input.scenario.set_name(bad);
  input.scenario.set_description(bad);
  input.scenario_text = bad;
  input.command = bad;
  input.version = bad;
  input.cells[0].settings = {{bad, bad}};
  RunRecord& run = input.cells[0].runs[0];
  for (LinkRecord& link : run.links) link.name = bad;
  run.measures[0].name = bad;
  run.checks = {{bad, bad, Verdict::failed, 1, 1, bad}};
  const std::string clean = report_html(made_up_single(8, 1));
  for (const bool sweep : {false, true}) {
    if (sweep) input.cells.push_back({1, {{bad, "2"}}, input.cells[0].runs});
    const std::string page = report_html(input);
    EXPECT_EQ(count_of(page, "<script"), count_of(clean, "<script"));
    EXPECT_EQ(count_of(page, "</script"), count_of(clean, "</script"));
    EXPECT_THAT(page, Not(HasSubstr("<img src=x")));
    EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;script&gt;alert(&#39;x&#39;)"));
    EXPECT_NO_THROW(charts_in(page));
  }
}

TEST(ReportHtml, VerdictLine) {
  ReportInput input = made_up_single(8, 2);
  EXPECT_THAT(report_html(input),
              HasSubstr("<strong>All checkers passed:</strong> 2 invariants held in every run, 1 "
                        "skipped, 1 does not apply."));
  input.cells[0].runs[1] = made_up_run({.rounds = 8, .breaks = true}, 2);
  const std::string page = report_html(input);
  EXPECT_THAT(page, HasSubstr("<strong>Failed:</strong> i3 (the report is exact)"));
  EXPECT_THAT(page, HasSubstr("seed 2: round 12, rank 3"));
  input.cells[0].runs[0].checks.clear();
  input.cells[0].runs[1].checks.clear();
  EXPECT_THAT(report_html(input), HasSubstr("No invariant was checked."));
}

TEST(ReportHtml, FailedCallsAreRedOnTheWholePage) {
  for (const bool sweep : {false, true}) {
    ReportInput input = sweep ? made_up_sweep() : made_up_single(8, 2);
    for (CellRecord& cell : input.cells) {
      for (RunRecord& run : cell.runs) run.measures.push_back({"failed_calls", 0});
    }
    const std::string clean = report_html(input);
    EXPECT_THAT(clean, HasSubstr("<dt>Failed calls</dt><dd>0</dd>"));
    EXPECT_THAT(clean, Not(HasSubstr("class=\"number bad\"")));
    RunRecord& run = input.cells.back().runs.back();
    run.rounds[3].failed_calls = 5;
    run.measures.back().value = 5;
    const std::string page = report_html(input);
    EXPECT_THAT(page, HasSubstr("<dt>Failed calls</dt><dd class=\"bad\">5</dd>"));
    EXPECT_EQ(count_of(page, "class=\"number bad\""), 1u);
    EXPECT_EQ(count_of(page, ">Failed calls</th>"), sweep ? 1u : 0u);
    if (sweep) continue;
    EXPECT_EQ(charts_in(page).size(), charts_in(clean).size() + 1) << "a chart over rounds";
  }
}

TEST(ReportHtml, RunsThatCouldNotBeMadeAreAFailure) {
  ReportInput input = made_up_single(8, 2);
  input.failure = "1 of 3 runs could not be made: seed 3: no <end>";
  EXPECT_THAT(
      report_html(input),
      HasSubstr("<p class=\"verdict failed\"><strong>Failed:</strong> 1 of 3 runs could not "
                "be made: seed 3: no &lt;end&gt;"));
  const Json json = Json::parse(summary_json(input));
  EXPECT_EQ(json["verdict"], "failed");
  EXPECT_EQ(json["failure"], input.failure);
}

TEST(ReportHtml, FactsOfAllRuns) {
  const ReportInput input = made_up_sweep();
  const std::string page = report_html(input);
  EXPECT_THAT(page, HasSubstr("<dt>Cells</dt><dd>15</dd>"));
  EXPECT_THAT(page, HasSubstr("<dt>Seeds</dt><dd>1–3</dd>"));
  EXPECT_THAT(page, HasSubstr("<dt>Runs</dt><dd>45</dd>"));
  EXPECT_THAT(page, HasSubstr("<dt>Rounds</dt><dd>4,500</dd>"));
  EXPECT_THAT(page, HasSubstr(hash_text(trace_hash_of(input.cells))));
  EXPECT_THAT(page, HasSubstr(escape(input.command)));
  EXPECT_THAT(page, Not(HasSubstr("Not complete")));
}

TEST(ReportHtml, NothingFinished) {
  ReportInput input = made_up_single(8, 1);
  input.cells.clear();
  input.complete = false;
  const std::string page = report_html(input);
  EXPECT_THAT(page, HasSubstr("No run was finished."));
  EXPECT_THAT(page, HasSubstr("Not complete"));
  EXPECT_EQ(charts_in(page).size(), 0u);
}

TEST(ReportHtml, StaysSmall) {
  EXPECT_LT(report_html(made_up_single(20'000, 2)).size(), 320'000u);
  EXPECT_EQ(report_html(made_up_sweep()), report_html(made_up_sweep()));
}

TEST(SweepCharts, OverTheFieldWithNumbersByTheOther) {
  ReportInput input = made_up_sweep();
  const auto cells = summarize(input.cells);
  const std::vector<Chart> charts = sweep_charts(cells);
  ASSERT_EQ(charts.size(), 6u);
  EXPECT_EQ(charts[0].x.title, "Packet loss on link[0] (%)");
  EXPECT_EQ(charts[0].by, "estimator");
  EXPECT_EQ(charts[0].y.title, "Round time, median (ms)");
  EXPECT_TRUE(charts[4].y.log) << "two orders of magnitude";
  EXPECT_FALSE(charts[0].y.log);
}

TEST(CellCharts, HistogramHoldsEveryRound) {
  const ReportInput input = made_up_single(200, 3);
  const auto cells = summarize(input.cells);
  for (const Chart& chart : cell_charts(cells[0])) {
    if (chart.kind != Chart::Kind::histogram) continue;
    double sum = 0;
    for (const double count : chart.series[0].y) sum += count;
    EXPECT_EQ(sum, 600);
    EXPECT_EQ(chart.series[0].x.front(), cells[0].round_ms.min);
    EXPECT_EQ(chart.series[0].x.back(), cells[0].round_ms.max);
    return;
  }
  FAIL() << "no histogram";
}

TEST(NoteworthyLinks, LossiestFirstEachOnceInItsWorstCell) {
  const ReportInput input = made_up_sweep();
  const auto cells = summarize(input.cells);
  const std::vector<LinkRow> rows = noteworthy_links(cells, 3);
  ASSERT_GE(rows.size(), 4u);
  EXPECT_EQ(rows[0].link.name, "uplink 7");  // loses twice as much as the other links
  EXPECT_EQ(*rows[0].cell->setting("link[0].loss.random.p"), "0.4");
  EXPECT_NEAR(rows[0].link.lost_share(), 0.8, 0.001);
  EXPECT_EQ(rows[3].link.name, "uplink 15");  // the busiest
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(rows[i].link.name, rows[k].link.name);
  }
}

TEST(Label, WordsAndUnits) {
  EXPECT_EQ(title_of(label_of_measure("round_ms.p50")), "Round time, median (ms)");
  EXPECT_EQ(title_of(label_of_measure("round_ms.p99.9")), "Round time, p99.9 (ms)");
  EXPECT_EQ(title_of(label_of_measure("pooled.call_ms.p90")),
            "Call time, p90 of all seeds' records (ms)");
  EXPECT_EQ(title_of(label_of_measure("loss")), "Data missing at the end (%)");
  EXPECT_EQ(label_of_measure("loss").factor, 100);
  EXPECT_EQ(label_of_measure("workload.loss").factor, 1);
  EXPECT_EQ(title_of(label_of_measure("drift.pair_mean")), "Drift: pair mean");
  EXPECT_EQ(title_of(label_of_field("link[0].rate_mbps")), "Rate on link[0] (Mb/s)");
  EXPECT_EQ(title_of(label_of_field("link[0].delay_ms.normal.mean")),
            "link[0].delay_ms.normal.mean (ms)");
  EXPECT_EQ(title_of(label_of_field("ranks")), "Ranks");
}

TEST(NameOf, ValuesAsPeopleSayThem) {
  EXPECT_EQ(name_of({"link[0].loss.random.p", "0.05"}), "5 %");
  EXPECT_EQ(name_of({"operation.window_bytes", "65536"}), "64 KiB");
  EXPECT_EQ(name_of({"operation.codec", "fp32:rotate"}), "fp32:rotate");
  EXPECT_EQ(name_of({"operation.delivery", "kind: best_effort deadline_ms: 2000"}),
            "best effort, deadline ms 2000");
  EXPECT_EQ(name_of({"link[0].loss", "random { p: 0.1 }"}), "random, p 0.1");
  EXPECT_EQ(name_of({"endpoint", "tcp_ring", true, true, "Transport", "TCP ring (CUBIC)"}),
            "TCP ring (CUBIC)");
}

TEST(LabelOf, TheScenariosTitleReplacesTheWordsAndKeepsTheUnit) {
  scenario::Setting setting{"link[0].loss.random.p", "0.05"};
  setting.title = "Loss at the switch";
  EXPECT_EQ(title_of(label_of(setting)), "Loss at the switch (%)");
}

TEST(ShareAxis, WhatAllTextsBeginWith) {
  struct Case {
    std::vector<const char*> measures;
    const char* axis;
    std::vector<const char*> curves;
  };
  for (const Case& c : std::vector<Case>{
           {{"round_ms.p99"}, "Round time, p99 (ms)", {""}},
           {{"round_ms.p50", "round_ms.p99"}, "Round time (ms)", {"median", "p99"}},
           {{"drift.pair", "drift.pair_predicted_gap"},
            "Drift of two replicas (mean square)",
            {"measured", "predicted from the gap"}},
           {{"loss", "loss_first_pass"},
            "%",
            {"Data missing at the end", "Data lost on the first pass"}},
           {{"goodput_gbps", "round_ms.p99"}, "", {"Goodput (Gb/s)", "Round time, p99 (ms)"}},
       }) {
    SCOPED_TRACE(c.measures.front());
    std::vector<Label> labels;
    for (const char* name : c.measures) labels.push_back(label_of_measure(name));
    const SharedLabel shared = share_axis(labels);
    EXPECT_EQ(shared.axis, c.axis);
    EXPECT_THAT(shared.curves, ElementsAreArray(c.curves));
  }
}

TEST(Escape, AllFiveCharacters) {
  EXPECT_EQ(escape("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

}  // namespace
}  // namespace leeway::sim
