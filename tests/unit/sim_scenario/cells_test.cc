#include "scenario/sweep.h"

#include <algorithm>

#include "scenario/parse.h"
#include "scenario/set_field.h"
#include "unit/sim_scenario/scenario_text.h"

namespace leeway::sim::scenario {
namespace {

using Texts = std::vector<std::string>;

std::vector<Cell> cells_of(const std::string& text) {
  const auto grid = cells(parsed(text));
  if (grid.ok()) return *grid;
  ADD_FAILURE() << grid.status().text();
  return {};
}

// Returns the values to which a scenario's only sweep sets its field.
Texts swept(const std::string& text) {
  Texts values;
  for (const Cell& cell : cells_of(text)) values.push_back(cell.settings.at(0).value);
  return values;
}

TEST(Cells, AScenarioWithoutSweepsIsOneCell) {
  const auto grid = cells_of("ranks: 8");
  ASSERT_EQ(grid.size(), 1u);
  EXPECT_TRUE(grid[0].settings.empty());
  EXPECT_EQ(grid[0].scenario.ranks(), 8u);
}

TEST(Cells, TheLastSweepChangesFastest) {
  const auto grid = cells_of(
      "sweep { field: \"ranks\" values: [2, 4] }"
      "sweep { field: \"operation.codec\" texts: [\"fp32\", \"nvfp4\", \"int8:clip\"] }");
  ASSERT_EQ(grid.size(), 6u);
  EXPECT_EQ(to_string(grid[1].settings), "ranks=2 operation.codec=nvfp4");
  EXPECT_EQ(to_string(grid[5].settings), "ranks=4 operation.codec=int8:clip");
  for (std::size_t i = 0; i < grid.size(); ++i) {
    EXPECT_EQ(grid[i].index, i);
    EXPECT_EQ(grid[i].scenario.sweep_size(), 0);
  }
  EXPECT_EQ(grid[5].scenario.ranks(), 4u);
  EXPECT_EQ(grid[5].scenario.operation().codec(), "int8:clip");
}

TEST(Cells, SettingsRepeatTheirCell) {
  const std::string text =
      "link {} seed { count: 3 }"
      "sweep { field: \"link[0].loss.random.p\" range { from: 0.001 to: 0.3 steps: 7 log: true } }"
      "sweep { field: \"operation.estimator\" texts: [\"ratio\", \"stratified\"] }";
  for (const Cell& cell : cells_of(text)) {
    Scenario repeated = parsed(text);
    for (const Setting& setting : cell.settings) {
      ASSERT_TRUE(apply_setting(repeated, setting.field + "=" + setting.value).ok());
    }
    EXPECT_EQ(repeated.SerializeAsString(), cell.scenario.SerializeAsString());
  }
}

TEST(Cells, SweepsWholeMessages) {
  const auto grid = cells_of(
      "link {} sweep { field: \"link[0].loss\" texts: [\"\", \"random { p: 0.1 }\", "
      "\"gilbert_elliott { p: 0.1 r: 0.5 }\"] }");
  ASSERT_EQ(grid.size(), 3u);
  EXPECT_FALSE(grid[0].scenario.link(0).loss().has_random());
  EXPECT_EQ(grid[1].scenario.link(0).loss().random().p(), 0.1);
  EXPECT_EQ(grid[2].scenario.link(0).loss().gilbert_elliott().r(), 0.5);
}

// A TCP ring has no delivery classes or codecs, but its deadline acts.
TEST(Cells, AreMadeOnceWhereASweptFieldDoesNotAct) {
  const auto grid = cells_of(
      "link {} sweep { field: \"endpoint\" texts: [\"core\", \"tcp_ring\"] }"
      "sweep { field: \"operation.delivery\" texts: [\"kind: exact deadline_ms: 9\", "
      "\"kind: best_effort deadline_ms: 9\", \"kind: bounded deadline_ms: 9\"] }"
      "sweep { field: \"link[0].loss.random.p\" values: [0, 0.1] }");
  ASSERT_EQ(grid.size(), 8u);
  for (std::size_t i = 0; i < grid.size(); ++i) EXPECT_EQ(grid[i].index, i);
  EXPECT_TRUE(grid[5].settings[1].acts);
  EXPECT_FALSE(grid[6].settings[1].acts);
  EXPECT_EQ(to_string(grid[7].settings), "endpoint=tcp_ring link[0].loss.random.p=0.1");
}

TEST(Cells, AreAllMadeWhereAPartOfTheFieldActs) {
  const auto grid = cells_of(
      "endpoint: tcp_ring sweep { field: \"operation.delivery\" texts: ["
      "\"kind: exact deadline_ms: 9\", \"kind: exact deadline_ms: 99\"] }");
  EXPECT_EQ(grid.size(), 2u);
}

TEST(Cells, OfSweepsThatVaryAloneOneLeavesItsFirstValue) {
  const auto grid = cells_of(
      "link {} sweep { field: \"ranks\" values: [2, 4] }"
      "sweep { field: \"link[0].loss.random.p\" values: [0, 0.1, 0.2] alone: true }"
      "sweep { field: \"link[0].rate_mbps\" values: [100, 10] alone: true }");
  ASSERT_EQ(grid.size(), 8u);  // out of 12
  EXPECT_EQ(to_string(grid[1].settings), "ranks=2 link[0].loss.random.p=0 link[0].rate_mbps=10");
  EXPECT_FALSE(grid[1].settings[2].at_base);
  EXPECT_EQ(to_string(grid[3].settings), "ranks=2 link[0].loss.random.p=0.2 link[0].rate_mbps=100");
}

TEST(Cells, CarryTheNamesOfTheFile) {
  const auto grid = cells_of(
      "sweep { field: \"ranks\" values: [2, 4] title: \"Workers\" names: [\"two\", \"four\"] }");
  EXPECT_EQ(grid.at(1).settings.at(0).title, "Workers");
  EXPECT_EQ(grid.at(1).settings.at(0).name, "four");
  const auto wrong = parse_text("sweep { field: \"ranks\" values: [2, 4] names: \"two\" }", "f");
  EXPECT_NE(wrong.status().text().find("names has 1 entry; the sweep has 2 values"),
            std::string_view::npos);
}

TEST(ApplyFull, IsTheLongForm) {
  Scenario scenario = parsed(
      "seed { count: 2 } sweep { field: \"ranks\" values: [2, 4] }"
      "full: \"seed.count=9\" full: \"sweep[0].values=2, 4, 8\"");
  EXPECT_EQ(cells(scenario)->size(), 2u);
  ASSERT_TRUE(apply_full(scenario).ok());
  EXPECT_EQ(cells(scenario)->size(), 3u);
  EXPECT_EQ(scenario.seed().count(), 9u);
  EXPECT_EQ(scenario.full_size(), 0);
}

TEST(ApplyFull, AWrongOneIsFoundWhenTheFileIsRead) {
  const auto wrong = parse_text("ranks: 4 full: \"ranks=0\"", "f");
  EXPECT_NE(wrong.status().text().find("ranks is 0; allowed is 1 to 16384"),
            std::string_view::npos);
}

TEST(Range, HasEqualDifferences) {
  EXPECT_EQ(
      swept("link {} sweep { field: \"link[0].rate_mbps\" range { from: 100 to: 1000 steps: 4 } }"),
      (Texts{"100", "400", "700", "1000"}));
  EXPECT_EQ(swept("link {} sweep { field: \"link[0].loss.random.p\" "
                  "range { from: 0 to: 0.4 steps: 5 } }"),
            (Texts{"0", "0.1", "0.2", "0.3", "0.4"}));
  EXPECT_EQ(swept("link {} sweep { field: \"link[0].loss.random.p\" "
                  "range { from: 0.3 to: 0.1 steps: 3 } }"),
            (Texts{"0.3", "0.2", "0.1"}));
}

TEST(Range, LogHasEqualFactors) {
  EXPECT_EQ(swept("link {} sweep { field: \"link[0].loss.random.p\" "
                  "range { from: 0.001 to: 0.1 steps: 5 log: true } }"),
            (Texts{"0.001", "0.00316227766", "0.01", "0.0316227766", "0.1"}));
  EXPECT_EQ(swept("sweep { field: \"ranks\" range { from: 64 to: 4 steps: 5 log: true } }"),
            (Texts{"64", "32", "16", "8", "4"}));
}

TEST(Range, LogSpansManyOrders) {
  const Texts values =
      swept("sweep { field: \"operation.bytes\" range { from: 4 to: 4e11 steps: 12 log: true } }");
  ASSERT_EQ(values.size(), 12u);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], std::string("4").append(i, '0'));
  }
}

TEST(Range, RoundsForWholeFields) {
  EXPECT_EQ(swept("sweep { field: \"ranks\" range { from: 2 to: 12 steps: 4 } }"),
            (Texts{"2", "5", "9", "12"}));
}

TEST(Sweeps, AreCheckedWhereTheyAreWritten) {
  EXPECT_EQ(error_of("sweep { field: \"rnaks\" values: 3 }"),
            "a.txtpb:1:9: sweep[0].field is rnaks: Scenario has no field \"rnaks\"; did you mean "
            "\"ranks\"?");
  EXPECT_EQ(error_of("link {}\nsweep { field: \"link[0].loss.random.p\" values: [0, 1.5] }"),
            "a.txtpb:2:1: sweep[0] cannot be: link[0].loss.random.p is 1.5; allowed is 0 to 1");
  EXPECT_EQ(error_of("sweep { field: \"link[0].rate_mbps\" values: 3 }"),
            "a.txtpb:1:1: sweep[0] cannot be: link[0].rate_mbps names nothing: link has 0 entries");
  EXPECT_EQ(error_of("sweep { field: \"ranks\" }"),
            "a.txtpb:1:1: sweep[0] has no values; give it values, texts or a range");
  EXPECT_EQ(error_of("sweep { values: 3 }"),
            "a.txtpb:1:1: sweep[0].field is missing; Sweep needs it");
  EXPECT_EQ(error_of("sweep { field: \"ranks\" values: 3 texts: \"4\" }"),
            "a.txtpb:1:1: sweep[0] takes one of values, texts and range");
  EXPECT_EQ(error_of("sweep { field: \"seed.from\" values: 3 }"),
            "a.txtpb:1:9: sweep[0].field is seed, which cannot be swept");
  EXPECT_EQ(error_of("sweep { field: \"ranks\" values: 3 } sweep { field: \"ranks\" values: 4 }"),
            "a.txtpb:1:44: sweep[1].field is swept by sweep[0] already");
}

TEST(Sweeps, RangesMustMakeSense) {
  EXPECT_EQ(error_of("sweep { field: \"ranks\" range { from: 1 to: 3 steps: 9 } }"),
            "a.txtpb:1:1: sweep[0] has 9 steps from 1 to 3, of which two are the same; take fewer "
            "steps");
  EXPECT_EQ(error_of("link {} sweep { field: \"link[0].loss.random.p\" "
                     "range { from: 0 to: 1 steps: 3 log: true } }"),
            "a.txtpb:1:9: sweep[0] a log range needs from and to above 0");
  EXPECT_EQ(error_of("sweep { field: \"ranks\" range { from: 1 to: 3 steps: 1 } }"),
            "a.txtpb:1:46: sweep[0].range.steps is 1; allowed is 2 to 1000");
}

TEST(Sweeps, GridsAreBounded) {
  const std::string a = "sweep { field: \"ranks\" range { from: 1 to: 100 steps: 100 } }";
  const std::string b = "sweep { field: \"rounds\" range { from: 1 to: 41 steps: 41 } }";
  EXPECT_EQ(error_of(a + "\n" + b), "a.txtpb:2:1: sweep[1] makes 4100 cells; at most 4096");
  EXPECT_EQ(error_of(a + "\nseed { count: 1000000 }"),
            "a.txtpb:2:8: seed.count makes 100000000 runs; at most 10000000");
}

TEST(Cells, NameTheCellWhoseCombinationIsImpossible) {
  const auto grid =
      cells(parsed("slow { rank: 3 factor: 2 } sweep { field: \"slow[0].factor\" values: [1, 2] }"
                   "sweep { field: \"ranks\" values: [4, 2] }"));
  ASSERT_FALSE(grid.ok());
  EXPECT_EQ(grid.status().text(),
            "cell 1 (slow[0].factor=1 ranks=2): slow[0].rank is 3; allowed is 0 to 1");
}

}  // namespace
}  // namespace leeway::sim::scenario
