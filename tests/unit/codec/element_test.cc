// Compares the scalar conversions with the nearest representable value, found by search in a table
// of all values. Doubles hold every midpoint exactly.
#include "codec/element.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace leeway::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Returns mantissa * 2^exponent, straight from the format's definition.
double value_of(std::uint16_t code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  const double magnitude = std::ldexp(significand, std::max(exponent, 1) - bias - mantissa_bits);
  return code & 0x8000 ? -magnitude : magnitude;
}

// Returns all finite non-negative values in the order of their codes. The next code is infinity.
std::vector<double> finite_values(int exponent_bits, int mantissa_bits) {
  std::vector<double> values;
  for (int code = 0; code < ((1 << exponent_bits) - 1) << mantissa_bits; ++code) {
    values.push_back(value_of(static_cast<std::uint16_t>(code), exponent_bits, mantissa_bits));
  }
  return values;
}

std::uint16_t nearest_code(const std::vector<double>& values, float x) {
  const double magnitude = std::fabs(static_cast<double>(x));
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const auto above = static_cast<std::size_t>(
      std::lower_bound(values.begin(), values.end(), magnitude) - values.begin());
  if (above < values.size() && values[above] == magnitude)
    return static_cast<std::uint16_t>(sign | above);
  const double step = values.back() - values[values.size() - 2];
  const double upper = above < values.size() ? values[above] : values.back() + step;
  const double middle = (values[above - 1] + upper) / 2;
  const bool up = magnitude > middle || (magnitude == middle && above % 2 == 0);
  return static_cast<std::uint16_t>(sign | (up ? above : above - 1));
}

template <typename Encode>
void expect_nearest_everywhere(const std::vector<double>& values, Encode encode) {
  std::uint64_t wrong = 0;
  // A prime stride visits every exponent with all kinds of mantissas: 2.1 million of the 2^32
  // floats.
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 2017) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(x)) continue;
    const std::uint16_t expected =
        std::isinf(x) ? static_cast<std::uint16_t>((x < 0 ? 0x8000 : 0) | values.size())
                      : nearest_code(values, x);
    wrong += encode(x).bits != expected;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(HalfFromFloat, IsTheNearestValueOfAllInAStrideOverAllFloats) {
  expect_nearest_everywhere(finite_values(5, 10), half_from_float);
}

TEST(BFloat16FromFloat, IsTheNearestValueOfAllInAStrideOverAllFloats) {
  expect_nearest_everywhere(finite_values(8, 7), bfloat16_from_float);
}

template <typename Encode>
void expect_ties_to_even(const std::vector<double>& values, Encode encode) {
  for (std::size_t code = 0; code + 1 < values.size(); ++code) {
    const auto middle = static_cast<float>((values[code] + values[code + 1]) / 2);
    if (static_cast<double>(middle) != (values[code] + values[code + 1]) / 2)
      continue;  // below the smallest float
    ASSERT_EQ(encode(middle).bits, code + code % 2) << code;
    ASSERT_EQ(encode(std::nextafter(middle, 0.0f)).bits, code) << code;
    ASSERT_EQ(encode(std::nextafter(middle, kInfinity)).bits, code + 1) << code;
  }
}

TEST(HalfFromFloat, RoundsEveryTieToTheEvenCode) {
  expect_ties_to_even(finite_values(5, 10), half_from_float);
}

TEST(BFloat16FromFloat, RoundsEveryTieToTheEvenCode) {
  expect_ties_to_even(finite_values(8, 7), bfloat16_from_float);
}

TEST(HalfFromFloat, OverflowsToInfinityFromHalfAStepAboveTheLargestValue) {
  EXPECT_EQ(half_from_float(65504.0f).bits, 0x7BFF);
  EXPECT_EQ(half_from_float(std::nextafter(65520.0f, 0.0f)).bits, 0x7BFF);
  EXPECT_EQ(half_from_float(65520.0f).bits, 0x7C00);
  EXPECT_EQ(half_from_float(-1e30f).bits, 0xFC00);
  EXPECT_EQ(half_from_float(-kInfinity).bits, 0xFC00);
}

TEST(HalfFromFloat, KeepsTheSignOfZeroAndOfWhatUnderflows) {
  EXPECT_EQ(half_from_float(0.0f).bits, 0x0000);
  EXPECT_EQ(half_from_float(-0.0f).bits, 0x8000);
  EXPECT_EQ(half_from_float(-0x1p-26f).bits, 0x8000);
  EXPECT_EQ(half_from_float(0x1p-25f).bits, 0x0000);  // tie between 0 and the smallest subnormal
  EXPECT_EQ(half_from_float(0x1.000002p-25f).bits, 0x0001);
}

TEST(HalfFromFloat, KeepsNanQuietWithSignAndUpperPayload) {
  EXPECT_EQ(half_from_float(kNan).bits, 0x7E00);
  EXPECT_EQ(half_from_float(std::bit_cast<float>(0xFF800001u)).bits, 0xFE00);
  EXPECT_EQ(half_from_float(std::bit_cast<float>(0x7FA02000u)).bits, 0x7F01);
}

TEST(BFloat16FromFloat, KeepsNanInfinityAndSubnormals) {
  EXPECT_EQ(bfloat16_from_float(std::bit_cast<float>(0xFF800001u)).bits, 0xFFC0);
  EXPECT_EQ(bfloat16_from_float(std::bit_cast<float>(0x7FFFFFFFu)).bits, 0x7FFF);
  EXPECT_EQ(bfloat16_from_float(kInfinity).bits, 0x7F80);
  EXPECT_EQ(bfloat16_from_float(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_EQ(bfloat16_from_float(std::bit_cast<float>(0x00018000u)).bits, 0x0002);
}

TEST(FloatFromHalf, GivesTheValueOfEveryCode) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const float value = float_from_half({static_cast<std::uint16_t>(code)});
    const std::uint32_t magnitude = code & 0x7FFF;
    if (magnitude > 0x7C00) {
      ASSERT_TRUE(std::isnan(value)) << code;
    } else if (magnitude == 0x7C00) {
      ASSERT_EQ(value, code & 0x8000 ? -kInfinity : kInfinity);
    } else {
      ASSERT_EQ(value, value_of(static_cast<std::uint16_t>(code), 5, 10)) << code;
    }
    ASSERT_EQ(std::signbit(value), (code & 0x8000) != 0) << code;
  }
}

TEST(FloatFromBFloat16, GivesTheValueOfEveryCode) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const float value = float_from_bfloat16({static_cast<std::uint16_t>(code)});
    const std::uint32_t magnitude = code & 0x7FFF;
    if (magnitude > 0x7F80) {
      ASSERT_TRUE(std::isnan(value)) << code;
    } else if (magnitude == 0x7F80) {
      ASSERT_EQ(value, code & 0x8000 ? -kInfinity : kInfinity);
    } else {
      ASSERT_EQ(value, value_of(static_cast<std::uint16_t>(code), 8, 7)) << code;
    }
  }
}

}  // namespace
}  // namespace leeway::codec
