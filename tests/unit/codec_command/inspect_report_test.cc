#include "codec/inspect_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

namespace leeway::tools::codecs {
namespace {

using testing::HasSubstr;
using testing::Not;

Inspection small_inspection() {
  constexpr std::array kValues = {0.0f, 1.0f, -2.0f, 2.0f, std::numeric_limits<float>::infinity()};
  Inspection inspection;
  inspection.path = "gradient.f32";
  inspection.fit.add(kValues);
  inspection.histogram.add(kValues);
  inspection.sample.add(kValues);
  inspection.formats = {{"nvfp4", 4.5, 20.0, 16.0, 20.5, 16.5},
                        {"fp16", 16.0, std::numeric_limits<double>::infinity(), {}, 70.0, {}}};
  inspection.pruning = {{0.9, 0.125, 0.98}};
  inspection.ranks = 4;
  inspection.automatic = {{0.1, "fp8_e4m3_block"}};
  return inspection;
}

std::size_t characters(const std::string& line) {  // in UTF-8
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST(InspectText, SaysWhatTheTensorHolds) {
  const std::string text = inspect_text(small_inspection(), 80);
  EXPECT_THAT(text, testing::StartsWith("gradient.f32\n  elements    5\n"));
  EXPECT_THAT(text, HasSubstr("zeros       1 (20.00 %)"));
  EXPECT_THAT(text, HasSubstr("non-finite  1\n"));
  EXPECT_THAT(text, HasSubstr("|x|         1 .. 2"));
}

TEST(InspectText, SetsMeasuredBesidePredicted) {
  const std::string text = inspect_text(small_inspection(), 80);
  EXPECT_THAT(text, testing::ContainsRegex("\nnvfp4 +4.500 +20.00 +20.50 +16.00 +16.50\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nfp16 +16.000 +exact +70.00 +- +-\n"));
  EXPECT_THAT(text, HasSubstr("non-finite elements as zeros"));
}

TEST(InspectText, NamesTheBestAndWhatAutomaticTakes) {
  const std::string text = inspect_text(small_inspection(), 80);
  EXPECT_THAT(text, testing::ContainsRegex("4 bits +nvfp4, 20.00 dB +nvfp4, 16.00 dB"));
  EXPECT_THAT(text, testing::ContainsRegex(" 10 %  fp8_e4m3_block\n"));
  EXPECT_THAT(text, testing::ContainsRegex("90 % +0.125 +0.9800\n"));
}

TEST(InspectText, FitsIntoTheWidth) {
  for (const std::size_t width : {60u, 80u, 120u}) {
    std::istringstream stream(inspect_text(small_inspection(), width));
    for (std::string line; std::getline(stream, line);) {
      EXPECT_LE(characters(line), std::max<std::size_t>(width, 80)) << line;
    }
  }
}

TEST(InspectText, ATensorOfZerosHasNothingToMeasure) {
  Inspection inspection;
  inspection.path = "zeros";
  inspection.fit.add(std::array{0.0f});
  EXPECT_THAT(inspect_text(inspection, 80), HasSubstr("Nothing to encode."));
}

TEST(InspectJson, HoldsEveryFigure) {
  const auto document = nlohmann::json::parse(inspect_json(small_inspection()));
  EXPECT_EQ(document["file"], "gradient.f32");
  EXPECT_EQ(document["elements"], 5);
  EXPECT_EQ(document["zeros"], 1);
  EXPECT_EQ(document["non_finite"], 1);
  ASSERT_EQ(document["histogram"].size(), 2u);
  EXPECT_EQ(document["histogram"][1]["log2"], 1);
  EXPECT_EQ(document["histogram"][1]["count"], 2);
  EXPECT_EQ(document["formats"][0]["nearest_dB"], 20.0);
  EXPECT_EQ(document["formats"][1]["nearest_dB"], "exact");
  EXPECT_TRUE(document["formats"][1]["stochastic_dB"].is_null());
  EXPECT_EQ(document["best"]["nearest"]["4 bits"], "nvfp4");
  EXPECT_EQ(document["best"]["nearest"]["16 bits"], "fp16");
  EXPECT_EQ(document["automatic"]["choices"][0]["codec"], "fp8_e4m3_block");
  EXPECT_EQ(document["pruning"][0]["threshold"], 0.125);
}

TEST(InspectJson, SurvivesNamesThatAreNotText) {
  Inspection inspection = small_inspection();
  inspection.path = "\xff\xfe";
  EXPECT_TRUE(nlohmann::json::accept(inspect_json(inspection)));
}

}  // namespace
}  // namespace leeway::tools::codecs
