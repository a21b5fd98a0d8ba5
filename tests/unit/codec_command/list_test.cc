#include "codec/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "codec/catalog.h"

namespace leeway::tools::codecs {
namespace {

using testing::HasSubstr;

constexpr std::size_t kSamples = std::size_t{1} << 14;

const std::vector<ListRow>& measured() {
  static const auto rows = measure_list(kSamples);
  return rows;
}

const ListRow& row(const std::string& text) {
  return *std::find_if(measured().begin(), measured().end(),
                       [&](const ListRow& r) { return r.text == text; });
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST(Catalog, HasEveryFormatByTheNameThatIsParsed) {
  for (int c = static_cast<int>(Codec::fp32); c < static_cast<int>(Codec::automatic); ++c) {
    EXPECT_TRUE(std::any_of(catalog().begin(), catalog().end(), [c](const CatalogEntry& entry) {
      return parse_codec(entry.text).value().codec == static_cast<Codec>(c);
    })) << to_string(static_cast<Codec>(c));
  }
  for (const CatalogEntry& entry : catalog()) {
    EXPECT_EQ(to_string(parse_codec(entry.text).value()), entry.text);
  }
}

// The tolerance of 0.25 dB is five standard errors of 2^14 samples.
TEST(MeasureList, FindsTheKnownErrorsOfNormalValues) {
  EXPECT_NEAR(*row("nvfp4").normal_nearest, 20.43, 0.25);
  EXPECT_NEAR(*row("nvfp4").normal_stochastic, 16.54, 0.25);
  EXPECT_NEAR(*row("mxfp4").normal_nearest, 19.03, 0.25);
  EXPECT_NEAR(*row("bf16").normal_nearest, 55.59, 0.25);
  EXPECT_TRUE(std::isinf(*row("fp32").normal_nearest));
}

TEST(MeasureList, SaysHowEachRounds) {
  EXPECT_EQ(row("fp32").rounding, "exact");
  EXPECT_EQ(row("nvfp4").rounding, "both");
  EXPECT_EQ(row("luq").rounding, "stochastic");
  EXPECT_FALSE(row("luq").normal_nearest.has_value());
}

TEST(MeasureList, CountsBitsAndBlocks) {
  EXPECT_EQ(row("mxfp8_e4m3").bits, 8.25);
  EXPECT_EQ(row("mxfp8_e4m3").block, 32u);
  EXPECT_EQ(row("nvfp4").block, 16u);
  EXPECT_EQ(row("int8").block, 0u);
}

TEST(ListText, PutsTheUseIntoTheRowWhereItFits) {
  EXPECT_THAT(list_text(measured(), 0), testing::ContainsRegex("\nluq  +4.016 .*wide spreads"));
  EXPECT_LE(widest_line(list_text(measured(), 120)), 120u);
  EXPECT_EQ(list_text(measured(), 120), list_text(measured(), 0));
}

TEST(ListText, FitsIntoEightyColumns) {
  const std::string text = list_text(measured(), 80);
  EXPECT_THAT(text, testing::ContainsRegex("\nluq  .*\n    wide spreads"));
  EXPECT_LE(widest_line(text), 80u);
}

TEST(ListText, ExplainsEverySetting) {
  for (const char* setting : {":nearest", ":stochastic", ":floor", ":rotate", ":clip", ":draws=N",
                              ":KEPT/GROUP", ":bound=X"}) {
    EXPECT_THAT(list_text(measured(), 80), HasSubstr(setting));
  }
}

TEST(ListJson, HoldsEveryRow) {
  const auto document = nlohmann::json::parse(list_json(measured(), kSamples));
  EXPECT_EQ(document["samples"], kSamples);
  ASSERT_EQ(document["formats"].size(), measured().size());
  const auto& first = document["formats"][0];
  EXPECT_EQ(first["codec"], "fp32");
  EXPECT_EQ(first["bits_per_element"], 32.0);
  EXPECT_EQ(first["normal_nearest_dB"], "exact");
  EXPECT_TRUE(first["normal_stochastic_dB"].is_null());
  EXPECT_EQ(document["settings"].size(), setting_catalog().size());
}

}  // namespace
}  // namespace leeway::tools::codecs
