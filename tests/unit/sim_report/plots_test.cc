#include "report/plots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/report.h"
#include "report/round_column.h"
#include "unit/sim_report/made_up_runs.h"

namespace leeway::sim {
namespace {

using Plot = scenario::Report::Plot;

Plot plot_of(const char* x, const char* y, const char* by = nullptr) {
  Plot plot;
  plot.set_x(x);
  plot.set_y(y);
  if (by != nullptr) plot.add_by(by);
  return plot;
}

RunRecord run_with(std::uint64_t seed, double p99) {
  RunRecord run;
  run.seed = seed;
  run.measures = {{"round_ms.p99", p99},
                  {"round_ms.p50", p99 / 2},
                  {"loss", 0.25},
                  {"drift.pair", p99},
                  {"drift.pair_predicted", p99 + 1}};
  run.round_ms = {p99, p99 + 1, p99 + 2};
  RoundRecord round;
  round.end_ns = static_cast<std::int64_t>(p99 * 1e6);
  run.rounds = {round, round};
  run.rounds[1].round = 1;
  run.rounds[1].loss = 7;
  return run;
}

// Makes cells of 8 and then 4 ranks, with codecs a and b. p99 is the number of ranks, plus 100 for
// b, plus 2 for seed 2.
std::vector<CellRecord> grid() {
  std::vector<CellRecord> cells;
  for (const int ranks : {8, 4}) {
    for (const char* codec : {"a", "b"}) {
      const double p99 = ranks + (codec[0] == 'b' ? 100 : 0);
      cells.push_back({cells.size(),
                       {{"ranks", std::to_string(ranks)}, {"operation.codec", codec}},
                       {run_with(1, p99), run_with(2, p99 + 2)}});
    }
  }
  return cells;
}

TEST(DrawPlot, ACurveForEachValueOfBy) {
  const auto cells = grid();
  const Chart chart =
      draw_plot(plot_of("ranks", "round_ms.p99", "operation.codec"), summarize(cells));
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[0].name, "a");
  EXPECT_EQ(chart.series[0].x, (std::vector<double>{4, 8}));
  EXPECT_EQ(chart.series[0].y, (std::vector<double>{5, 9}));
  EXPECT_EQ(chart.series[1].y, (std::vector<double>{105, 109}));
  EXPECT_DOUBLE_EQ(chart.series[0].error[0], 1);  // from 4 and 6
  EXPECT_EQ(chart.x.title, "Ranks");
  EXPECT_EQ(chart.y.title, "Round time, p99 (ms)");
  EXPECT_EQ(chart.title, "Round time, p99 over ranks, by codec");
  EXPECT_EQ(chart.note, "");
}

TEST(DrawPlot, SeveralMeasuresTimesTheValuesOfBy) {
  const auto cells = grid();
  Plot plot = plot_of("ranks", "round_ms.p99", "operation.codec");
  plot.add_also_y("round_ms.p50");
  const Chart chart = draw_plot(plot, summarize(cells));
  ASSERT_EQ(chart.series.size(), 4u);
  EXPECT_EQ(chart.y.title, "Round time (ms)");
  EXPECT_EQ(chart.title, "Round time, p99 and median over ranks, by codec");
  EXPECT_EQ(chart.series[0].name, "a, p99");
  EXPECT_EQ(chart.series[1].name, "a, median");
  EXPECT_EQ(chart.series[3].name, "b, median");
  EXPECT_EQ(chart.series[0].y, (std::vector<double>{5, 9}));
  EXPECT_EQ(chart.series[1].y, (std::vector<double>{2.5, 4.5}));
  EXPECT_EQ(chart.series[3].stroke->color, 1u);  // that of b
  EXPECT_EQ(chart.series[3].stroke->dash, 1u);   // the same dash as the median's
}

TEST(DrawPlot, ACurveForEachCombinationOfSeveralBy) {
  const auto cells = grid();
  Plot plot = plot_of("loss", "round_ms.p99", "ranks");
  plot.add_by("rounds");  // fixed by --set
  plot.add_by("operation.codec");
  const Chart chart = draw_plot(plot, summarize(cells));
  ASSERT_EQ(chart.series.size(), 4u);
  EXPECT_EQ(chart.series[1].name, "8, b");
  EXPECT_EQ(chart.series[2].name, "4, a");
  EXPECT_EQ(chart.series[1].y, (std::vector<double>{109}));
  EXPECT_EQ(chart.by, "ranks and codec");
  EXPECT_EQ(chart.title, "Round time, p99 over data missing at the end, by ranks and codec");
  EXPECT_EQ(chart.note, "");
}

TEST(DrawPlot, WhatIsPredictedIsDashed) {
  const auto cells = grid();
  Plot plot = plot_of("ranks", "drift.pair");
  EXPECT_FALSE(draw_plot(plot, summarize(cells)).series.at(0).stroke.has_value());
  plot.add_also_y("round_ms.p50");
  plot.add_also_y("drift.pair_predicted");
  const Chart chart = draw_plot(plot, summarize(cells));
  ASSERT_EQ(chart.series.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(chart.series[i].stroke->color, i);
    EXPECT_EQ(chart.series[i].stroke->dash, i == 2 ? 2u : 0u);
  }
}

TEST(DrawPlot, FieldsThatAreNotShownArePutTogether) {
  const auto cells = grid();
  const Chart chart = draw_plot(plot_of("ranks", "round_ms.p99"), summarize(cells));
  ASSERT_EQ(chart.series.size(), 1u);
  EXPECT_EQ(chart.series[0].y, (std::vector<double>{55, 59}));
  EXPECT_EQ(chart.note, "Mean over all values of: Codec.");
}

TEST(DrawPlot, TextsAreCategories) {
  const auto cells = grid();
  const Chart chart = draw_plot(plot_of("operation.codec", "loss", "ranks"), summarize(cells));
  EXPECT_EQ(chart.kind, Chart::Kind::bars);
  EXPECT_EQ(chart.x.categories, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[0].x, (std::vector<double>{0, 1}));
  EXPECT_EQ(chart.series[0].y, (std::vector<double>{25, 25}));  // in percent
  EXPECT_EQ(chart.y.title, "Data missing at the end (%)");
}

// If a transport does not use the codec, there is one curve, which is named by the fields that act.
TEST(DrawPlot, FieldsThatDoNotActAreNotInACurvesName) {
  auto cells = grid();
  cells[0].settings[0] = {"ranks", "8", true, true, "Workers", "eight"};
  cells[0].settings[1].acts = false;
  Plot plot = plot_of("round", "round_ms", "ranks");
  plot.add_by("operation.codec");
  const Chart chart = draw_plot(plot, summarize(cells));
  ASSERT_EQ(chart.series.size(), 4u);
  EXPECT_EQ(chart.series[0].name, "eight");
  EXPECT_EQ(chart.series[1].name, "8, b");
  EXPECT_EQ(chart.by, "workers and codec");
}

TEST(DrawPlot, WhereXDoesNotActTheCurveIsFlat) {
  auto cells = grid();
  cells.erase(cells.begin());
  cells[1].settings[0].acts = false;  // codec a
  const Chart chart =
      draw_plot(plot_of("ranks", "round_ms.p99", "operation.codec"), summarize(cells));
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[1].name, "a");
  EXPECT_EQ(chart.series[1].x, (std::vector<double>{4, 8}));
  EXPECT_EQ(chart.series[1].y, (std::vector<double>{5, 5}));
}

TEST(DrawPlot, WhatVariesAloneStandsAtItsFirstValueUnlessItIsShown) {
  auto cells = grid();
  for (const std::size_t cell : {2, 3}) cells[cell].settings[0].at_base = false;  // ranks 4
  const Chart hidden = draw_plot(plot_of("operation.codec", "round_ms.p99"), summarize(cells));
  ASSERT_EQ(hidden.series.size(), 1u);
  EXPECT_EQ(hidden.series[0].y, (std::vector<double>{9, 109}));
  EXPECT_EQ(hidden.note, "Ranks: 8.");
  const Chart shown =
      draw_plot(plot_of("ranks", "round_ms.p99", "operation.codec"), summarize(cells));
  EXPECT_EQ(shown.series.at(0).x, (std::vector<double>{4, 8}));
}

TEST(DrawPlot, CrowdedNumbersStandAtEvenDistances) {
  std::vector<CellRecord> cells;
  for (const char* loss : {"0", "0.001", "0.01", "0.05"}) {
    cells.push_back({cells.size(), {{"link[0].loss.random.p", loss}}, {run_with(1, 5)}});
  }
  Plot plot = plot_of("link[0].loss.random.p", "round_ms.p99");
  const Chart chart = draw_plot(plot, summarize(cells));
  EXPECT_EQ(chart.kind, Chart::Kind::lines);
  EXPECT_EQ(chart.x.title, "Packet loss on link[0] (%)");
  EXPECT_EQ(chart.x.categories, (std::vector<std::string>{"0", "0.1", "1", "5"}));
  EXPECT_EQ(chart.series.at(0).x, (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(chart.note, "x is not to scale.");
}

TEST(DrawPlot, APercentileThatIsTheLongestRoundSaysSo) {
  const auto cells = grid();
  const Chart chart =
      draw_plot(plot_of("ranks", "pooled.round_ms.p99.9", "operation.codec"), summarize(cells));
  EXPECT_EQ(chart.note, "Of 6 rounds a point, p99.9 is the longest.");
}

TEST(DrawPlot, AMeasureOverAMeasure) {
  const auto cells = grid();
  const Chart joined =
      draw_plot(plot_of("round_ms.p99", "loss", "operation.codec"), summarize(cells));
  ASSERT_EQ(joined.series.size(), 2u);
  EXPECT_EQ(joined.kind, Chart::Kind::lines);
  EXPECT_EQ(joined.series[0].x, (std::vector<double>{9, 5}));  // in the order of the grid
  const Chart loose = draw_plot(plot_of("round_ms.p99", "loss"), summarize(cells));
  EXPECT_EQ(loose.kind, Chart::Kind::points);
  EXPECT_EQ(loose.series[0].x.size(), 4u);
}

TEST(DrawPlot, PooledPercentilesHaveNoError) {
  const auto cells = grid();
  const Chart chart =
      draw_plot(plot_of("ranks", "pooled.round_ms.p50", "operation.codec"), summarize(cells));
  EXPECT_EQ(chart.series[0].y[0], 6);  // median of 4 5 6 6 7 8
  EXPECT_TRUE(std::isnan(chart.series[0].error[0]));
}

TEST(DrawPlot, PointsAtZeroHaveNoPlaceOnALogarithmicAxis) {
  auto cells = grid();
  cells[0].settings[0].value = cells[1].settings[0].value = "0";
  Plot plot = plot_of("ranks", "round_ms.p99", "operation.codec");
  plot.set_log_x(true);
  const Chart chart = draw_plot(plot, summarize(cells));
  EXPECT_EQ(chart.series[0].x, (std::vector<double>{4}));
  EXPECT_EQ(chart.note, "2 points at zero are not shown: the axis is logarithmic.");
}

TEST(DrawPlot, OverRounds) {
  const auto cells = grid();
  const Chart chart = draw_plot(plot_of("round", "loss", "operation.codec"), summarize(cells));
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[0].x, (std::vector<double>{1}));  // not evaluated in round 0
  EXPECT_EQ(chart.series[0].y, (std::vector<double>{7}));
  EXPECT_EQ(chart.note, "Mean over all values of: Ranks.");
}

TEST(DrawPlot, SeveralFiguresOverRounds) {
  const auto cells = grid();
  Plot plot = plot_of("round", "call_ms_max", "operation.codec");
  plot.add_also_y("call_ms_median");
  plot.add_also_y("round_ms");
  const Chart chart = draw_plot(plot, summarize(cells));
  ASSERT_EQ(chart.series.size(), 6u);
  EXPECT_EQ(chart.y.title, "ms");
  EXPECT_EQ(chart.series[5].name, "b, Round time");
  EXPECT_EQ(chart.series[5].y, (std::vector<double>{107, 107}));
  plot.add_also_y("jain");
  EXPECT_TRUE(draw_plot(plot, summarize(cells)).series.empty());
}

TEST(DrawPlot, AFieldThatIsFixedNowGivesNoPicture) {
  const auto cells = grid();
  EXPECT_TRUE(draw_plot(plot_of("rounds", "loss"), summarize(cells)).series.empty());
  const Chart chart = draw_plot(plot_of("ranks", "loss", "rounds"), summarize(cells));
  EXPECT_EQ(chart.series.size(), 1u);
  EXPECT_EQ(chart.by, "");
}

TEST(DrawPlot, TooManyCurvesAreThinnedOut) {
  std::vector<CellRecord> cells;
  for (std::size_t i = 0; i < 40; ++i) {
    cells.push_back({i, {{"ranks", std::to_string(i)}}, {run_with(1, 5)}});
  }
  const Chart chart = draw_plot(plot_of("round", "round_ms", "ranks"), summarize(cells));
  ASSERT_EQ(chart.series.size(), 16u);
  EXPECT_EQ(chart.series.front().name, "0");
  EXPECT_EQ(chart.series.back().name, "39");
  EXPECT_EQ(chart.note, "16 of 40 curves are shown, evenly chosen.");

  Plot plot = plot_of("round", "round_ms", "ranks");
  for (const char* also : {"call_ms_max", "loss"}) plot.add_also_y(also);
  const Chart three = draw_plot(plot, summarize(cells));
  ASSERT_EQ(three.series.size(), 15u);  // all measures of each value that remains
  EXPECT_EQ(three.series.back().name, "39, Objective of the workload");
  EXPECT_EQ(three.note, "15 of 120 curves are shown, evenly chosen.");
}

TEST(OverRounds, NeighboursAreAveragedWhereRoundsAreMany) {
  RunRecord run;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    RoundRecord round;
    round.round = i;
    round.end_ns = i * 1'000'000;
    run.rounds.push_back(round);
  }
  const Series series = over_rounds("", {&run}, *find_round_column("round_ms"));
  EXPECT_EQ(rounds_per_point({&run}), 3u);
  ASSERT_EQ(series.x.size(), 334u);
  EXPECT_EQ(series.x[0], 1);
  EXPECT_EQ(series.y[0], 1);
  EXPECT_EQ(series.x.back(), 999);
}

Status checked(const Plot& plot) {
  scenario::Scenario scenario;
  scenario.add_sweep()->set_field("ranks");
  scenario.add_sweep()->set_field("link[0].rate_mbps");
  *scenario.mutable_report()->add_plot() = plot_of("ranks", "loss");
  *scenario.mutable_report()->add_plot() = plot;
  return check_plots(scenario, run_with(1, 5));
}

TEST(CheckPlots, KnownNames) {
  EXPECT_TRUE(checked(plot_of("ranks", "round_ms.p99", "link[0].rate_mbps")).ok());
  EXPECT_TRUE(checked(plot_of("loss", "round_ms.p99")).ok());
  EXPECT_TRUE(checked(plot_of("round", "nmse", "ranks")).ok());
  EXPECT_TRUE(checked(plot_of("ranks", "pooled.call_ms.p99.9")).ok());
  EXPECT_TRUE(checked(plot_of("link[3].loss.random.p", "loss", "rounds")).ok()) << "fixed by --set";
}

TEST(CheckPlots, UnknownNamesGetTheNearestOne) {
  EXPECT_EQ(checked(plot_of("ranks", "round_ms.p9")).text(),
            "report.plot[1].y: \"round_ms.p9\" is no measure; did you mean \"round_ms.p99\"?");
  EXPECT_EQ(
      checked(plot_of("rnaks", "loss")).text(),
      "report.plot[1].x: \"rnaks\" is no swept field and no measure; did you mean \"ranks\"?");
  EXPECT_EQ(checked(plot_of("ranks", "loss", "link[0].rate_mbp")).text(),
            "report.plot[1].by: \"link[0].rate_mbp\" is no swept field; did you mean "
            "\"link[0].rate_mbps\"?");
  EXPECT_EQ(checked(plot_of("round", "nmes")).text(),
            "report.plot[1].y: \"nmes\" is no figure of a round; did you mean \"nmse\"?");
  Plot several = plot_of("ranks", "round_ms.p99");
  several.add_also_y("loss");
  EXPECT_TRUE(checked(several).ok());
  several.add_also_y("lost");
  EXPECT_EQ(checked(several).text(),
            "report.plot[1].also_y[1]: \"lost\" is no measure; did you mean \"loss\"?");
  EXPECT_EQ(checked(plot_of("ranks", "ranks")).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leeway::sim
