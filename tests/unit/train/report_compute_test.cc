// Tests the report's text about slow workers and dropped work, in the table and in JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "sample_reports.h"
#include "train/progress.h"

namespace leeway::tools::train {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Fills a run of 1,600 planned micro-batches of 2 samples that took `seconds`.
RunResult computed(RunResult run, std::uint64_t completed, double seconds) {
  run.seconds = seconds;
  run.compute.steps = 50;
  run.compute.planned = 1600;
  run.compute.completed = completed;
  run.compute.samples = 2 * completed;
  return run;
}

// A tenth of the work is dropped. There are 288 samples a second, and 256 without the threshold.
SeedOutcome dropping(SeedOutcome outcome) {
  outcome.lossy = computed(outcome.lossy, 1440, 10);
  outcome.lossy.compute.threshold_ms = 61.25;
  outcome.lossy.compute.speedup_predicted = 1.15;
  outcome.lossy.compute.exchanges = 3;
  outcome.lossy.compute.exchange_waits = 1;
  outcome.lossy.compute.threshold_clamps = 2;
  outcome.lossy.compute.speedup_modelled = 1.13;
  outcome.no_threshold = computed(run_with(4.02, 0.1), 1600, 12.5);
  outcome.twin = computed(*outcome.twin, 1600, 5);
  return outcome;
}

TrainReport with_threshold(TrainReport report) {
  Arguments arguments;
  arguments.compute.straggler = "lognormal:5";
  arguments.compute.threshold = "auto";
  report.settings.compute = understand(arguments, Options{})->compute;
  for (SeedOutcome& outcome : report.outcomes) outcome = dropping(outcome);
  return report;
}

TEST(Speedup, IsTheRatioOfSamplesASecond) {
  const RunResult run = computed(run_with(4, 0), 1440, 10);
  EXPECT_EQ(run.samples_per_second(), 288.0);
  EXPECT_DOUBLE_EQ(speedup(run, computed(run_with(4, 0), 1600, 12.5)), 1.125);
}

TEST(ComputeSummaryDropRate, IsWhatWasNotCompleted) {
  EXPECT_DOUBLE_EQ(computed(run_with(4, 0), 1440, 10).compute.drop_rate(), 0.1);
  EXPECT_EQ(ComputeSummary{}.drop_rate(), 0.0);
}

TEST(FormatTable, HasAColumnForTheRunWithoutThreshold) {
  const std::string table = format_table(with_threshold(one_seed()));
  EXPECT_THAT(table, ContainsRegex("10 % loss +no threshold +loss-free twin\n"));
  EXPECT_THAT(table, ContainsRegex("validation perplexity +4\\.0400 +4\\.0200 +4\\.0000\n"));
  EXPECT_THAT(table, ContainsRegex("samples a second +288\\.0 +256\\.0 +640\\.0\n"));
  EXPECT_THAT(table, ContainsRegex("micro-batches dropped, % +10\\.00 +0\\.00 +0\\.00\n"));
  EXPECT_THAT(table, ContainsRegex("samples used +2880 +3200 +3200\n"));
  EXPECT_THAT(table, ContainsRegex("threshold at the end, ms +61\\.25 +- +-\n"));
}

TEST(FormatTable, SetsTheMeasuredSpeedUpBesideThePredictions) {
  const std::string predicted =
      "\neffective speed-up: 1.150 predicted by the search, 1.130 by the normal model\n";
  EXPECT_THAT(format_table(with_threshold(one_seed())),
              HasSubstr("effective speed-up: 1.125 measured" + predicted));
  TrainReport report = with_threshold(three_seeds());
  report.outcomes[1].no_threshold->seconds = 11;
  EXPECT_THAT(format_table(report), HasSubstr("1.080 measured (from 0.990 to 1.125)" + predicted));
  for (SeedOutcome& outcome : report.outcomes) outcome.no_threshold.reset();
  EXPECT_THAT(format_table(report), HasSubstr(predicted));
  EXPECT_THAT(format_table(report), Not(HasSubstr("measured")));
}

TEST(FormatTable, OfThreeColumnsFitsATerminal) {
  std::istringstream table(format_table(with_threshold(one_seed())));
  for (std::string line; std::getline(table, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(FormatTable, EndsInWhatTheBudgetFoundOutOfOrder) {
  TrainReport report = with_threshold(one_seed());
  EXPECT_THAT(format_table(report), Not(HasSubstr("warning")));
  report.outcomes[0].lossy.compute.warning = "the threshold is short";
  EXPECT_THAT(format_table(report), HasSubstr("\nwarning: the threshold is short\n"));
}

TEST(FormatTable, OfAThresholdNotYetFoundShowsNone) {
  TrainReport report = with_threshold(one_seed());
  report.outcomes[0].lossy.compute.threshold_ms.reset();
  EXPECT_THAT(format_table(report), ContainsRegex("threshold at the end, ms +- +- +-\n"));
}

TEST(FormatTable, IsSilentAboutComputingThatIsEven) {
  const std::string table = format_table(one_seed());
  for (const char* text : {"samples a second", "dropped", "threshold", "speed-up"})
    EXPECT_THAT(table, Not(HasSubstr(text)));
}

TEST(FormatTable, OfStragglersAloneHasTheirSamplesASecond) {
  TrainReport report = with_threshold(one_seed());
  report.settings.compute.threshold = no_threshold;
  report.outcomes[0].no_threshold.reset();
  report.outcomes[0].lossy.compute.speedup_predicted.reset();
  const std::string table = format_table(report);
  EXPECT_THAT(table, ContainsRegex("samples a second +288\\.0 +640\\.0\n"));
  EXPECT_THAT(table, Not(HasSubstr("dropped")));
}

TEST(FormatHeader, SaysHowRanksCompute) {
  const auto corpus = Corpus::from_text("text", std::string(20'000, 'a') + "b");
  ASSERT_TRUE(corpus.ok());
  EXPECT_THAT(format_header(one_seed(), *corpus), Not(HasSubstr("computing")));
  const std::string header = format_header(with_threshold(one_seed()), *corpus);
  EXPECT_THAT(header, HasSubstr("computing: 8 micro-batches a step, straggler lognormal:5:1\n"));
  EXPECT_THAT(header,
              HasSubstr("threshold auto, normalisation realised, compensation extra_steps\n"));
}

TEST(ToJson, HasWhatWasDroppedAndGained) {
  const auto json = nlohmann::json::parse(to_json(with_threshold(three_seeds())));
  EXPECT_EQ(json["micro_batches"], 8);
  EXPECT_EQ(json["straggler"], "lognormal:5:1");
  EXPECT_EQ(json["compute_threshold"], "auto");
  EXPECT_EQ(json["compensation"], "extra_steps");
  EXPECT_EQ(json["normalisation"], "realised");
  EXPECT_DOUBLE_EQ(json["drop_rate"], 0.1);
  EXPECT_DOUBLE_EQ(json["samples_per_second"], 288.0);
  EXPECT_DOUBLE_EQ(json["speedup_measured"], 1.125);
  EXPECT_DOUBLE_EQ(json["speedup_predicted"], 1.15);
  EXPECT_DOUBLE_EQ(json["speedup_modelled"], 1.13);
  EXPECT_DOUBLE_EQ(json["threshold_ms"], 61.25);
  const auto& run = json["runs"][0];
  EXPECT_EQ(run["lossy"]["samples"], 2880);
  EXPECT_EQ(run["lossy"]["steps_made"], 50);
  EXPECT_EQ(run["lossy"]["exchanges"], 3);
  EXPECT_EQ(run["lossy"]["exchange_waits"], 1);
  EXPECT_EQ(run["lossy"]["threshold_clamps"], 2);
  EXPECT_EQ(run["no_threshold"]["samples_per_second"], 256.0);
  EXPECT_TRUE(run["no_threshold"]["threshold_ms"].is_null());
  EXPECT_DOUBLE_EQ(run["speedup_measured"], 1.125);
}

TEST(ToJson, WithoutAThresholdThereIsNoSpeedUp) {
  const auto json = nlohmann::json::parse(to_json(one_seed()));
  for (const char* name : {"speedup_measured", "speedup_predicted", "threshold_ms"})
    EXPECT_TRUE(json.at(name).is_null()) << name;
  EXPECT_TRUE(json["runs"][0]["no_threshold"].is_null());
  EXPECT_TRUE(json["runs"][0]["speedup_measured"].is_null());
  EXPECT_EQ(json["compute_threshold"], "none");
}

TEST(FormatProgress, OfARunThatDropsWorkSaysHowMuchBeyondWhat) {
  StepStatus status{.step = 30, .steps = 110, .loss = 1.5, .step_ms = 10.0, .loss_observed = 0};
  status.drop_rate = 0.083;
  EXPECT_THAT(format_progress("run", status),
              HasSubstr("0.00 % of packets lost, 8.3 % of work dropped, 1 s left"));
  status.threshold_ms = 61.24;
  EXPECT_THAT(format_progress("run", status),
              HasSubstr("8.3 % of work dropped beyond 61.2 ms, 1 s left"));
}

}  // namespace
}  // namespace leeway::tools::train
