#include "sim/result_table.h"

#include <gtest/gtest.h>

#include "fake_run.h"

namespace leeway::tools::simulation {
namespace {

std::vector<sim::CellRecord> two_cells() {
  std::vector<sim::CellRecord> cells(2);
  for (std::size_t i = 0; i < 2; ++i) {
    cells[i].index = i;
    cells[i].settings = {{"link[0].rate_mbps", i == 0 ? "100" : "1000"}};
  }
  sim::scenario::Scenario scenario;
  scenario.set_ranks(2);
  cells[0].runs = {fake_record(scenario, 1), fake_record(scenario, 3)};
  cells[1].runs = {fake_record(scenario, 1)};
  return cells;
}

TEST(ResultTable, ARowACellWithMeanAndStandardErrorOverSeeds) {
  // The medians are 3 and 5, so the mean is 4, the deviation sqrt(2), and the standard error 1.
  EXPECT_EQ(result_table({}, two_cells()),
            "  link[0]\n"
            "rate_mbps  runs  round_ms.p50       loss\n"
            "      100     2        4 +- 1  0.25 +- 0\n"
            "     1000     1             3       0.25\n");
}

TEST(ResultTable, MeasuresOfPlotsComeFirstAndOnlyThoseThatExist) {
  sim::scenario::Scenario scenario;
  scenario.mutable_report()->add_plot()->set_y("loss");
  scenario.mutable_report()->add_plot()->set_y("no.such.measure");
  const auto cells = two_cells();
  EXPECT_EQ(shown_measures(scenario, sim::summarize(cells)),
            (std::vector<std::string>{"loss", "round_ms.p50"}));
}

TEST(ResultTable, AllMeasuresOfAPlot) {
  sim::scenario::Scenario scenario;
  auto& plot = *scenario.mutable_report()->add_plot();
  plot.set_y("no.such.measure");
  plot.add_also_y("loss");
  const auto cells = two_cells();
  EXPECT_EQ(shown_measures(scenario, sim::summarize(cells)),
            (std::vector<std::string>{"loss", "round_ms.p50"}));
}

TEST(ResultTable, FailedCallsHaveAColumnAndARedRow) {
  auto cells = two_cells();
  for (sim::CellRecord& cell : cells) {
    for (sim::RunRecord& run : cell.runs) run.measures.push_back({"failed_calls", 0});
  }
  const std::string clean = result_table({}, cells, true);
  EXPECT_NE(clean.find("failed_calls"), std::string::npos);
  EXPECT_EQ(clean.find('\x1b'), std::string::npos);
  cells[1].runs[0].measures.back().value = 7;
  const std::string text = result_table({}, cells, true);
  const std::size_t red = text.find("\x1b[31m     1000     1");
  ASSERT_NE(red, std::string::npos) << text;
  EXPECT_EQ(text.find("\x1b[0m\n", red), text.size() - 5);
  EXPECT_EQ(result_table({}, cells).find('\x1b'), std::string::npos);
}

TEST(ResultTable, NothingFinishedIsNoTable) {
  EXPECT_EQ(result_table({}, {}), "");
}

}  // namespace
}  // namespace leeway::tools::simulation
