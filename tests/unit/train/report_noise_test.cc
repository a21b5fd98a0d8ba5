// Tests the report's text about noise and chosen codecs, in the table and in JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "sample_reports.h"

namespace leeway::tools::train {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

void use_automatic(TrainReport& report, const std::vector<CodecSteps>& codecs) {
  report.settings.reduce.codec = Codec::automatic;
  for (SeedOutcome& outcome : report.outcomes) outcome.lossy.codecs = codecs;
}

estimate::NoiseEstimate noise_of(double gradient, double quantisation, double loss) {
  return {.gradient_mean_square = gradient,
          .quantisation_variance = quantisation,
          .loss_variance = loss};
}

TEST(FormatTable, SetsTheGradientAgainstItsNoise) {
  TrainReport report = one_seed();
  report.outcomes[0].lossy.noise = noise_of(16e-6, 1e-6, 3e-6);
  report.outcomes[0].twin->noise = noise_of(25e-6, 0, 0);
  const std::string table = format_table(report);
  EXPECT_THAT(table, ContainsRegex("gradient / noise, rms +2\\.000 +-\n"));
  EXPECT_THAT(table, ContainsRegex("  gradient +0\\.004 +0\\.005\n"));
  EXPECT_THAT(table, ContainsRegex("noise of quantisation +0\\.001 +0\n"));
  EXPECT_THAT(table, ContainsRegex("noise of packet loss +0\\.00173 +0\n"));
}

TEST(FormatTable, ShowsNoNumbersForNoiseThatWasNotMeasured) {
  const std::string table = format_table(one_seed());
  EXPECT_THAT(table, ContainsRegex("gradient / noise, rms +- +-\n"));
  EXPECT_THAT(table, ContainsRegex("noise of quantisation +- +-\n"));
  EXPECT_THAT(table, Not(HasSubstr("warning")));
}

TEST(FormatTable, OfSeveralSeedsTakesTheRatioOfAverages) {
  TrainReport report = three_seeds();
  report.outcomes[0].lossy.noise = noise_of(13.0, 0.5, 0.5);
  report.outcomes[1].lossy.noise = noise_of(-1.0, 0.5, 0.5);  // noise-dominated
  EXPECT_THAT(format_table(report), ContainsRegex("gradient / noise, rms +2\\.449 "));
}

TEST(FormatTable, WarnsBelowTheCriticalRatioAndNotAbove) {
  TrainReport report = one_seed();
  report.outcomes[0].lossy.noise = noise_of(3.0, 0.4, 0.599);
  EXPECT_THAT(format_table(report), Not(HasSubstr("warning")));
  report.outcomes[0].lossy.noise = noise_of(1.0, 0.4, 0.6);
  const std::string table = format_table(report);
  EXPECT_THAT(table, HasSubstr("warning: at the end gradient / noise was 1.000, below sqrt(3)"));
  EXPECT_THAT(table, HasSubstr("2505.19115"));
  EXPECT_THAT(table, HasSubstr("Most of it is of\npacket loss."));
  report.outcomes[0].lossy.noise = noise_of(1.0, 0.6, 0.4);
  EXPECT_THAT(format_table(report), HasSubstr("is of\nquantisation."));
}

TEST(FormatTable, WarnsOfNothingThatTheNoiseOfTheBatchesOutweighs) {
  TrainReport report = one_seed();
  report.outcomes[0].lossy.noise = noise_of(1.0, 0.4, 0.6);
  report.outcomes[0].lossy.noise->dispersion = 10.0 * report.ranks;
  EXPECT_THAT(format_table(report), ContainsRegex("noise of the batches\\) +3\\.16 "));
  EXPECT_THAT(format_table(report), Not(HasSubstr("warning")));
  report.outcomes[0].lossy.noise->dispersion = 1.0 * report.ranks;
  EXPECT_THAT(format_table(report), HasSubstr("takes 33 % of the progress"));
}

// At the end of the default demo, the estimate is below zero, within its error.
TEST(FormatTable, GradientThatWasNotMeasuredWellEnoughIsABoundAndNoWarning) {
  TrainReport report = one_seed();
  report.outcomes[0].lossy.noise = noise_of(-0.5, 0.0, 1.0);
  report.outcomes[0].lossy.noise->gradient_error = 2.25;
  const std::string table = format_table(report);
  EXPECT_THAT(table, ContainsRegex("gradient / noise, rms +< 2\\.000 "));
  EXPECT_THAT(table, ContainsRegex("  gradient +< 2 "));
  EXPECT_THAT(table, Not(HasSubstr("warning")));
}

TEST(FormatTable, WarnsWhereNoLikelyGradientIsEnough) {
  TrainReport report = one_seed();
  report.outcomes[0].lossy.noise = noise_of(-0.5, 0.0, 1.0);
  report.outcomes[0].lossy.noise->gradient_error = 0.75;
  EXPECT_THAT(format_table(report), HasSubstr("gradient / noise was < 1.000, below sqrt(3)"));
}

TEST(FormatTable, SeedsNarrowTheErrorOfTheGradient) {
  TrainReport report = three_seeds();
  for (SeedOutcome& outcome : report.outcomes) {
    outcome.lossy.noise = noise_of(0.0, 0.0, 1.0);
    outcome.lossy.noise->gradient_error = std::sqrt(3.0);
  }
  EXPECT_THAT(format_table(report), ContainsRegex("gradient / noise, rms +< 1\\.414 "));
}

TEST(FormatTable, WarnsOfAGradientThatIsLostInItsNoise) {
  TrainReport report = one_seed();
  report.outcomes[0].lossy.noise = noise_of(-1.0, 0.5, 0.5);
  EXPECT_THAT(format_table(report), HasSubstr("gradient / noise was 0.000, below sqrt(3)"));
}

TEST(FormatTable, NamesTheCodecsThatAutomaticChose) {
  TrainReport report = three_seeds();
  use_automatic(report, {{Codec::fp8_e4m3_block, 32}, {Codec::nvfp4, 168}});
  report.outcomes[0].lossy.codecs = {{Codec::fp8_e4m3_block, 200}};
  const std::string table = format_table(report);
  EXPECT_THAT(table, ContainsRegex("steps with fp8_e4m3_block +88 +-\n"));
  EXPECT_THAT(table, ContainsRegex("steps with nvfp4 +112 +-\n"));
}

TEST(FormatTable, NamesNoCodecsThatWereAskedFor) {
  TrainReport report = one_seed();
  report.outcomes[0].lossy.codecs = {{Codec::native, 200}};
  EXPECT_THAT(format_table(report), Not(HasSubstr("steps with")));
}

TEST(FormatTable, FitsATerminal) {
  TrainReport report = one_seed();
  report.outcomes[0].lossy.drift->age_shares.fill(0.123);
  use_automatic(report, {{Codec::fp8_e4m3_block, 32}, {Codec::nvfp4, 168}});
  report.outcomes[0].lossy.noise = noise_of(-0.12345, 0.4, 0.6);
  report.outcomes[0].lossy.noise->dispersion = 0.1;
  report.outcomes[0].lossy.noise->gradient_error = 0.1;
  std::istringstream table(format_table(report));
  for (std::string line; std::getline(table, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(ToJson, NoiseIsNullUntilMeasured) {
  TrainReport report = one_seed();
  for (const char* name : {"gradient_to_noise", "gradient_to_noise_at_most", "gradient_rms",
                           "quantisation_rms", "loss_rms"}) {
    const auto json = nlohmann::json::parse(to_json(report));
    EXPECT_TRUE(json.at(name).is_null()) << name;
    EXPECT_TRUE(json["runs"][0]["lossy"].at(name).is_null()) << name;
  }
}

TEST(ToJson, HasTheNoiseOfEveryRunAndOfAll) {
  TrainReport report = three_seeds();
  report.outcomes[0].lossy.noise = noise_of(13.0, 0.25, 0.75);
  report.outcomes[1].lossy.noise = noise_of(5.0, 0.25, 0.75);
  report.outcomes[0].twin->noise = noise_of(4.0, 0.0, 0.0);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_DOUBLE_EQ(json["gradient_to_noise"], 3.0);
  EXPECT_DOUBLE_EQ(json["gradient_to_noise_at_most"], 3.0);
  EXPECT_DOUBLE_EQ(json["gradient_rms"], 3.0);
  EXPECT_DOUBLE_EQ(json["quantisation_rms"], 0.5);
  EXPECT_DOUBLE_EQ(json["loss_rms"], std::sqrt(0.75));
  EXPECT_DOUBLE_EQ(json["runs"][1]["lossy"]["gradient_to_noise"], std::sqrt(5.0));
  EXPECT_TRUE(json["runs"][0]["twin"]["gradient_to_noise"].is_null());
  EXPECT_EQ(json["runs"][0]["twin"]["gradient_rms"], 2.0);
}

TEST(ToJson, NamesTheCodecsOfTheModesHalves) {
  TrainReport report = one_seed();
  report.settings.reduce.codec = *parse_codec("nvfp4:nearest");
  report.settings.replica.codec = Codec::bf16;
  report.settings.error_feedback = true;
  report.outcomes[0].lossy.codecs = {{report.settings.reduce.codec, 200}};
  auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["codec"], "nvfp4:nearest");
  EXPECT_EQ(json["parameter_codec"], "bf16");
  EXPECT_TRUE(json["spread_codec"].is_null());
  EXPECT_EQ(json["error_feedback"], true);
  EXPECT_EQ(json["runs"][0]["lossy"]["codec_steps"]["nvfp4:nearest"], 200);

  report.settings.mode = Mode::ddp;
  json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["spread_codec"], "nvfp4:nearest");
  EXPECT_TRUE(json["parameter_codec"].is_null());
}

}  // namespace
}  // namespace leeway::tools::train
