#include "sim/runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "fake_run.h"

namespace leeway::tools::simulation {
namespace {

Plan plan_of(std::size_t cells, std::uint32_t seeds) {
  Plan plan;
  plan.seeds = {1, seeds};
  for (std::size_t i = 0; i < cells; ++i) {
    sim::scenario::Cell cell;
    cell.index = i;
    cell.scenario.set_ranks(static_cast<std::uint32_t>(i) + 2);
    plan.grid.push_back(cell);
  }
  return plan;
}

class Recorder : public RunnerObserver {
 public:
  void on_round(std::uint32_t, std::uint32_t) override { ++rounds; }
  Status on_finished(const RunName& run, const sim::RunRecord& record) override {
    EXPECT_EQ(run.seed, record.seed);
    finished.push_back(run);
    return answer;
  }
  std::size_t rounds = 0;
  std::vector<RunName> finished;
  Status answer;
};

class RunAll : public testing::Test {
 protected:
  Status run(const Plan& plan, RunFunction function, unsigned jobs) {
    outcomes_.resize(plan.runs());
    RunnerOptions options;
    options.run = std::move(function);
    options.jobs = jobs;
    options.stop = &stop_;
    return run_all(plan, options, outcomes_, recorder_);
  }
  std::size_t made() const {
    return static_cast<std::size_t>(std::count_if(outcomes_.begin(), outcomes_.end(),
                                                  [](const Outcome& o) { return bool(o.record); }));
  }
  std::atomic<bool> stop_{false};
  std::vector<Outcome> outcomes_;
  Recorder recorder_;
};

TEST_F(RunAll, OutcomesStandInThePlansOrderWhicheverEndsFirst) {
  const Plan plan = plan_of(2, 2);
  std::latch last_began(1);
  const auto function = [&](const sim::scenario::Scenario& scenario, std::uint64_t seed,
                            const sim::RunOptions& options) -> Result<sim::RunRecord> {
    if (scenario.ranks() == 3 && seed == 2) last_began.count_down();
    if (scenario.ranks() == 2 && seed == 1) last_began.wait();  // ends after all others have begun
    return fake_run(scenario, seed, options);
  };
  ASSERT_TRUE(run(plan, function, 2).ok());
  for (std::size_t i = 0; i < plan.runs(); ++i) {
    const RunName name = plan.run(i);
    ASSERT_TRUE(outcomes_[i].record);
    EXPECT_EQ(outcomes_[i].record->trace_hash, name.seed * 1000 + name.cell + 2);
  }
  EXPECT_EQ(recorder_.finished.size(), 4u);
}

TEST_F(RunAll, AFailedRunDoesNotKeepOthersFromBeingMade) {
  const auto function = [](const sim::scenario::Scenario& scenario, std::uint64_t seed,
                           const sim::RunOptions& options) -> Result<sim::RunRecord> {
    if (seed == 2) return Status::error(StatusCode::kUnsupported, "no such codec");
    return fake_run(scenario, seed, options);
  };
  ASSERT_TRUE(run(plan_of(1, 4), function, 3).ok());
  EXPECT_EQ(made(), 3u);
  EXPECT_EQ(outcomes_[1].failure.text(), "no such codec");
}

TEST_F(RunAll, StopsWhenAskedAndCountsNoStoppedRunAsFailed) {
  const auto function = [this](const sim::scenario::Scenario& scenario, std::uint64_t seed,
                               const sim::RunOptions& options) -> Result<sim::RunRecord> {
    if (seed == 3) stop_ = true;
    if (options.stop->load()) return Status::error(StatusCode::kCancelled, "stopped");
    return fake_run(scenario, seed, options);
  };
  ASSERT_TRUE(run(plan_of(1, 9), function, 1).ok());
  EXPECT_EQ(made(), 2u);
  for (const Outcome& outcome : outcomes_) EXPECT_TRUE(outcome.failure.ok());
}

TEST_F(RunAll, ARunThatCannotBeKeptStopsEverything) {
  recorder_.answer = Status::error(StatusCode::kUnavailable, "disk full");
  const Status status = run(plan_of(1, 9), fake_run, 1);
  EXPECT_EQ(status.text(), "disk full");
  EXPECT_EQ(recorder_.finished.size(), 1u);
}

TEST_F(RunAll, WhatHasARecordIsNotRunAgain) {
  const Plan plan = plan_of(1, 3);
  outcomes_.resize(3);
  outcomes_[1].record = fake_record(plan.grid[0].scenario, 2);
  ASSERT_TRUE(run(plan, fake_run, 2).ok());
  EXPECT_EQ(recorder_.finished.size(), 2u);
  EXPECT_EQ(made(), 3u);
}

TEST_F(RunAll, RoundsAreTold) {
  const auto function = [](const sim::scenario::Scenario& scenario, std::uint64_t seed,
                           const sim::RunOptions& options) -> Result<sim::RunRecord> {
    for (std::uint32_t round = 1; round <= 5; ++round) options.progress(round, 0);
    return fake_run(scenario, seed, options);
  };
  ASSERT_TRUE(run(plan_of(1, 2), function, 2).ok());
  EXPECT_EQ(recorder_.rounds, 10u);
}

// A run has 40 rounds of 50 ms, so the forecast must end its trial run early and be about right.
TEST_F(RunAll, TheForecastComesFirstAndCostsNoRun) {
  class Listener : public Recorder {
   public:
    void on_forecast(const Forecast& forecast, unsigned) override {
      EXPECT_EQ(rounds, 0u);
      seconds = forecast.seconds;
    }
    double seconds = 0;
  } listener;
  const auto slow = [](const sim::scenario::Scenario& scenario, std::uint64_t seed,
                       const sim::RunOptions& options) -> Result<sim::RunRecord> {
    for (std::uint32_t round = 1; round <= 40; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      options.progress(round, 0);
      if (*options.stop) return Status::error(StatusCode::kCancelled, "stopped");
    }
    return fake_run(scenario, seed, options);
  };
  Plan plan = plan_of(1, 1);
  plan.grid[0].scenario.set_rounds(40);
  outcomes_.resize(1);
  RunnerOptions options;
  options.run = slow;
  options.forecast = true;
  options.stop = &stop_;
  ASSERT_TRUE(run_all(plan, options, outcomes_, listener).ok());
  EXPECT_EQ(made(), 1u);
  EXPECT_GE(listener.seconds, 2.0);
  EXPECT_EQ(listener.rounds, 40u);
}

TEST_F(RunAll, ARunThatIsOverWhileTimesAreForecastIsKept) {
  const Plan plan = plan_of(2, 2);
  outcomes_.resize(4);
  RunnerOptions options;
  options.run = fake_run;
  options.forecast = true;
  options.stop = &stop_;
  ASSERT_TRUE(run_all(plan, options, outcomes_, recorder_).ok());
  EXPECT_EQ(recorder_.finished.size(), 4u);
}

TEST(JobsFor, NeverMoreThanRunsAndAtLeastOne) {
  EXPECT_EQ(jobs_for(8, 3), 3u);
  EXPECT_EQ(jobs_for(2, 30), 2u);
  EXPECT_EQ(jobs_for(1, 30), 1u);
  EXPECT_GE(jobs_for(0, 1000000), 1u);
  EXPECT_EQ(jobs_for(0, 1), 1u);
}

}  // namespace
}  // namespace leeway::tools::simulation
