#include "sim/results.h"

#include <gtest/gtest.h>

#include "fake_run.h"

namespace leeway::tools::simulation {
namespace {

Plan two_by_two() {
  Plan plan;
  plan.seeds = {5, 2};
  plan.grid.resize(2);
  plan.grid[1].index = 1;
  return plan;
}

std::vector<Outcome> four_outcomes(const Plan& plan) {
  std::vector<Outcome> outcomes(4);
  for (std::size_t i = 0; i < 4; ++i) {
    const RunName name = plan.run(i);
    outcomes[i].record = fake_record(plan.grid[name.cell].scenario, name.seed);
  }
  return outcomes;
}

TEST(Collect, EveryRunIsInItsCell) {
  const Plan plan = two_by_two();
  const Results results = collect(plan, four_outcomes(plan));
  ASSERT_EQ(results.cells.size(), 2u);
  EXPECT_EQ(results.cells[1].index, 1u);
  ASSERT_EQ(results.cells[1].runs.size(), 2u);
  EXPECT_EQ(results.cells[1].runs[1].seed, 6u);
  EXPECT_TRUE(results.complete());
  EXPECT_TRUE(results.passed());
}

TEST(Collect, TheFirstBrokenRunIsTheFirstOfThePlan) {
  const Plan plan = two_by_two();
  std::vector<Outcome> outcomes = four_outcomes(plan);
  for (const std::size_t i : {2, 3})
    outcomes[i].record->checks[0] = check("i1", sim::Verdict::failed);
  const Results results = collect(plan, std::move(outcomes));
  EXPECT_EQ(results.broken, 2u);
  ASSERT_TRUE(results.first_broken);
  EXPECT_EQ(results.first_broken->cell, 1u);
  EXPECT_EQ(results.first_broken->seed, 5u);
  EXPECT_FALSE(results.passed());
}

TEST(Collect, StoppedRunsMakeItIncompleteAndFailedOnesDoNot) {
  const Plan plan = two_by_two();
  std::vector<Outcome> outcomes = four_outcomes(plan);
  outcomes[1] = {std::nullopt, Status::error(StatusCode::kUnsupported, "no")};
  Results results = collect(plan, outcomes);
  EXPECT_TRUE(results.complete());
  EXPECT_FALSE(results.passed());
  outcomes[1] = {};
  results = collect(plan, outcomes);
  EXPECT_FALSE(results.complete());
  EXPECT_TRUE(results.passed());
}

TEST(CheckersText, NamesEachInvariantOnceByWhatItCameTo) {
  const Plan plan = two_by_two();
  std::vector<Outcome> outcomes = four_outcomes(plan);
  for (Outcome& outcome : outcomes) {
    outcome.record->checks = {check("i1", sim::Verdict::passed), check("i2", sim::Verdict::passed),
                              check("i3", sim::Verdict::skipped),
                              check("i4", sim::Verdict::not_applicable)};
  }
  EXPECT_EQ(checkers_text(collect(plan, outcomes).cells),
            "checkers  all passed: i1 i2; skipped: i3; do not apply: i4\n");
  outcomes[3].record->checks[1] = check("i2", sim::Verdict::failed);
  EXPECT_EQ(checkers_text(collect(plan, outcomes).cells),
            "checkers  FAILED: i2 (1 run); passed: i1; skipped: i3; do not apply: i4\n");
}

TEST(CheckersText, SaysWhenNothingWasChecked) {
  EXPECT_EQ(checkers_text({}), "checkers  none ran\n");
}

}  // namespace
}  // namespace leeway::tools::simulation
