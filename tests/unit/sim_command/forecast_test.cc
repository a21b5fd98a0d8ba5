#include "sim/forecast.h"

#include <gtest/gtest.h>

namespace leeway::tools::simulation {
namespace {

sim::scenario::Scenario rounds_of(std::uint32_t rounds) {
  sim::scenario::Scenario scenario;
  scenario.set_rounds(rounds);
  return scenario;
}

TEST(WholeRunSeconds, LeavesSettingUpOutOfWhatARoundTakes) {
  const Beginning beginning{.first_seconds = 1.5, .seconds = 2.5, .rounds = 11};
  EXPECT_DOUBLE_EQ(whole_run_seconds(beginning, rounds_of(101)), 1.5 + 10 * 1.0);
}

TEST(WholeRunSeconds, GoesByTheFirstRoundIfThatIsAllThereIs) {
  const Beginning beginning{.first_seconds = 2, .seconds = 2, .rounds = 1};
  EXPECT_DOUBLE_EQ(whole_run_seconds(beginning, rounds_of(10)), 20);
  EXPECT_EQ(whole_run_seconds(Beginning{}, rounds_of(10)), 0);
}

TEST(WholeRunSeconds, EndsWithTheSimulatedTime) {
  auto scenario = rounds_of(1'000'000);
  scenario.set_duration_ms(1000);
  const Beginning beginning{
      .first_seconds = 0, .seconds = 3, .rounds = 5, .first_ns = 0, .simulated_ns = 100'000'000};
  EXPECT_NEAR(whole_run_seconds(beginning, scenario), 30, 1e-9);
}

TEST(ForecastOf, IsTheMeanOfWhatWasTriedTimesTheRuns) {
  EXPECT_DOUBLE_EQ(forecast_of({1, 3}, 10, 2).seconds, 10);
  EXPECT_TRUE(forecast_of({}, 10, 2).unknown);
}

TEST(CellsToTry, ComeFromAllOverTheGrid) {
  EXPECT_EQ(cells_to_try(3, 12), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(cells_to_try(100, 4), (std::vector<std::size_t>{12, 37, 62, 87}));
}

TEST(ForecastText, SaysRunsCellsAndTime) {
  Plan plan;
  plan.grid.resize(24);
  plan.seeds = {1, 3};
  const std::string what = "72 runs (24 cells, 3 seeds): ";
  EXPECT_EQ(forecast_text(plan, {.seconds = 170}, 2), what + "about 3 minutes on 2 cores");
  EXPECT_EQ(forecast_text(plan, {.seconds = 42}, 1), what + "about 40 s on 1 core");
  EXPECT_EQ(forecast_text(plan, {.seconds = 6000}, 8), what + "about 1.7 hours on 8 cores");
  EXPECT_EQ(forecast_text(plan, {.unknown = true}, 2),
            what + "time not known, a round takes more than some seconds");
  EXPECT_EQ(forecast_text(plan, {.seconds = 2}, 2), "");
}

}  // namespace
}  // namespace leeway::tools::simulation
