#include "codec/error_meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "codec/standard_data.h"

namespace leeway::tools::codecs {
namespace {

std::optional<codec::Format> format(const char* text, Rounding rounding) {
  return format_with(parse_codec(text).value(), rounding);
}

TEST(RoundTripError, IsNoneWhereNothingChanges) {
  const auto values = normal_values(5000, 1);
  const auto error = round_trip_error(*format("fp32", Rounding::nearest), values, 1);
  EXPECT_EQ(error.noise, 0.0);
  EXPECT_TRUE(std::isinf(error.decibel()));
}

// Each of the three packets has the maximum 254, so its scale is 254 / 127 = 2, and 254 has no
// error. 3 is halfway between 2 and 4, so each 3 has an error of 1.
TEST(RoundTripError, AddsUpTheSquaresOfAllPackets) {
  std::vector<float> values(5000, 3.0f);
  for (std::size_t first = 0; first < values.size(); first += kPacketElements) values[first] = 254;
  const auto error = round_trip_error(*format("int8", Rounding::nearest), values, 1);
  EXPECT_DOUBLE_EQ(error.signal, 3 * 254.0 * 254.0 + 4997 * 9.0);
  EXPECT_DOUBLE_EQ(error.noise, 4997.0);
  EXPECT_DOUBLE_EQ(error.decibel(), 10 * std::log10(error.signal / 4997.0));
}

TEST(FormatWith, GivesBothRoundingsWhereThereIsAChoice) {
  EXPECT_FALSE(format("nvfp4", Rounding::nearest)->stochastic());
  EXPECT_TRUE(format("nvfp4", Rounding::stochastic)->stochastic());
}

TEST(FormatWith, GivesTheOnlyRoundingWhereThereIsNone) {
  EXPECT_FALSE(format("luq", Rounding::nearest).has_value());
  EXPECT_TRUE(format("luq", Rounding::stochastic)->stochastic());
  EXPECT_TRUE(format("fp32", Rounding::nearest).has_value());
  EXPECT_FALSE(format("fp32", Rounding::stochastic).has_value());
}

TEST(FormatWith, KeepsToWhatWasAskedFor) {
  EXPECT_FALSE(format("nvfp4:nearest", Rounding::stochastic).has_value());
  EXPECT_FALSE(format("nvfp4:stochastic", Rounding::nearest).has_value());
  EXPECT_FALSE(format("mxfp4:floor", Rounding::stochastic).has_value());
  EXPECT_TRUE(format("mxfp4:floor", Rounding::nearest).has_value());
}

TEST(BitsPerElement, CountsScalesAndHeader) {
  EXPECT_EQ(bits_per_element(*format("fp32", Rounding::nearest)), 32.0);
  EXPECT_EQ(bits_per_element(*format("mxfp4", Rounding::nearest)), 4.25);
  EXPECT_EQ(bits_per_element(*format("nvfp4", Rounding::nearest)), 4.5 + 8.0 / 2048);
}

}  // namespace
}  // namespace leeway::tools::codecs
