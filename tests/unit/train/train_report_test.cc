#include "train/train_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sample_reports.h"

namespace leeway::tools::train {
namespace {

using testing::HasSubstr;
using testing::Not;

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

TEST(FormatHeader, NamesTheCodecsOfBothHalves) {
  const auto corpus = Corpus::from_text("text", std::string(20'000, 'a') + "b");
  ASSERT_TRUE(corpus.ok());
  TrainReport report = one_seed();
  report.settings.reduce.codec = Codec::nvfp4;
  report.settings.replica.codec = Codec::bf16;
  EXPECT_THAT(format_header(report, *corpus), HasSubstr("gradients: codec nvfp4, best_effort"));
  EXPECT_THAT(format_header(report, *corpus), HasSubstr("parameters: codec bf16, best_effort\n"));
  report.settings.error_feedback = true;
  EXPECT_THAT(format_header(report, *corpus), HasSubstr("codec nvfp4 with error feedback,"));
  report.settings.mode = Mode::ddp;
  report.settings.reduce.spread_codec = Codec::fp16;
  EXPECT_THAT(format_header(report, *corpus), HasSubstr("their average: codec fp16, exact\n"));
}

TEST(FormatHeader, CountsRanksInEnglish) {
  const auto corpus = Corpus::from_text("text", std::string(20'000, 'a') + "b");
  ASSERT_TRUE(corpus.ok());
  TrainReport report = one_seed();
  EXPECT_THAT(format_header(report, *corpus), HasSubstr("4 ranks, replica mode"));
  report.ranks = 1;
  EXPECT_THAT(format_header(report, *corpus), HasSubstr("1 rank, replica mode"));
}

}  // namespace
}  // namespace leeway::tools::train
