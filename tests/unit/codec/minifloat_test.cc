// Compares element conversions with tables of all values, searched in exact arithmetic. Saturation
// and special values are those of CUDA's conversions (cuda_oracle_test.cc asks CUDA itself where it
// is installed).
#include "codec/minifloat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "unit/codec/element_tables.h"

namespace leeway::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

TEST(MinifloatDecode, GivesTheTabulatedValueOfEveryFiniteCode) {
  for (const ElementTable& table : element_tables()) {
    SCOPED_TRACE(table.name);
    ASSERT_EQ(table.magnitudes.size(), static_cast<std::size_t>(table.format.magnitude_max) + 1);
    for (int code = 0; code <= table.format.magnitude_max; ++code) {
      const double value = table.magnitudes[static_cast<std::size_t>(code)];
      ASSERT_EQ(decode(table.format, code), value) << code;
      ASSERT_EQ(decode(table.format, code | table.sign_bit()), -value) << code;
      ASSERT_FALSE(std::signbit(decode(table.format, code)));
      ASSERT_TRUE(std::signbit(decode(table.format, code | table.sign_bit()))) << "-0 included";
    }
  }
}

TEST(MinifloatDecode, KnowsInfinitiesAndNanWhereTheFormatHasThem) {
  for (const int sign : {0, 0x80}) {
    EXPECT_TRUE(std::isnan(decode(kE4M3, 0x7F | sign)));
    EXPECT_EQ(decode(kE5M2, 0x7C | sign), sign == 0 ? kInfinity : -kInfinity);
    for (const int code : {0x7D, 0x7E, 0x7F}) EXPECT_TRUE(std::isnan(decode(kE5M2, code | sign)));
  }
  for (const Minifloat& format : {kE2M3, kE3M2, kE2M1, kE3M0}) {
    for (int code = 0; code < 1 << format.code_bits; ++code) {
      ASSERT_TRUE(std::isfinite(decode(format, code))) << code;
    }
  }
}

TEST(MinifloatLargest, IsTheMaximumThatTheSpecificationsState) {
  EXPECT_EQ(largest(kE4M3), 448.0f);
  EXPECT_EQ(largest(kE5M2), 57344.0f);
  EXPECT_EQ(largest(kE2M3), 7.5f);
  EXPECT_EQ(largest(kE3M2), 28.0f);
  EXPECT_EQ(largest(kE2M1), 6.0f);
  EXPECT_EQ(largest(kE3M0), 64.0f);
  EXPECT_EQ(largest(kInteger8), 127.0f);
  // Smallest normal and subnormal values of OFP8 and MX.
  EXPECT_EQ(decode(kE4M3, 0x08), 0x1p-6f);
  EXPECT_EQ(decode(kE4M3, 0x01), 0x1p-9f);
  EXPECT_EQ(decode(kE5M2, 0x04), 0x1p-14f);
  EXPECT_EQ(decode(kE5M2, 0x01), 0x1p-16f);
  EXPECT_EQ(decode(kE2M3, 0x01), 0.125f);
  EXPECT_EQ(decode(kE3M2, 0x01), 0x1p-4f);
}

TEST(MinifloatEncodeNearest, GivesBackEveryFiniteCode) {
  for (const ElementTable& table : element_tables()) {
    SCOPED_TRACE(table.name);
    for (int code = 0; code <= table.format.magnitude_max; ++code) {
      const int negative = code | table.sign_bit();
      ASSERT_EQ(encode_nearest(table.format, decode(table.format, code)), code);
      ASSERT_EQ(encode_nearest(table.format, decode(table.format, negative)), negative);
    }
  }
}

TEST(MinifloatEncodeNearest, ChangesCodeExactlyAtEveryMidpointAndRoundsTiesToEven) {
  for (const ElementTable& table : element_tables()) {
    if (!table.rounded_to_nearest) continue;
    SCOPED_TRACE(table.name);
    for (int code = 0; code < table.format.magnitude_max; ++code) {
      const double exact = table.midpoint_above(static_cast<std::size_t>(code));
      const auto middle = static_cast<float>(exact);
      ASSERT_EQ(static_cast<double>(middle), exact);
      const int even = code + (code & 1);
      ASSERT_EQ(encode_nearest(table.format, std::nextafter(middle, 0.0f)), code);
      ASSERT_EQ(encode_nearest(table.format, middle), even);
      ASSERT_EQ(encode_nearest(table.format, std::nextafter(middle, kInfinity)), code + 1);
      ASSERT_EQ(encode_nearest(table.format, -std::nextafter(middle, 0.0f)),
                code | table.sign_bit());
      ASSERT_EQ(encode_nearest(table.format, -middle), even | table.sign_bit());
      ASSERT_EQ(encode_nearest(table.format, -std::nextafter(middle, kInfinity)),
                (code + 1) | table.sign_bit());
    }
  }
}

// A prime stride meets every exponent with all kinds of mantissas. `codec_exhaustive` compares all
// 2^32 floats.
TEST(MinifloatEncodeNearest, IsTheNearestValueOfAllInAStrideOverAllFloats) {
  for (const ElementTable& table : element_tables()) {
    if (!table.rounded_to_nearest) continue;
    const std::vector<double> middles = midpoints(table);
    std::uint64_t wrong = 0;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 4099) {
      const float x = from_bits(static_cast<std::uint32_t>(bits));
      if (!std::isnan(x))
        wrong += encode_nearest(table.format, x) != nearest_code(table, middles, x);
    }
    EXPECT_EQ(wrong, 0u) << table.name;
  }
}

// Few floats of the stride over all floats lie near the format's values, so this test takes a fine
// grid there.
TEST(MinifloatEncodeNearest, IsTheNearestValueOfAllInAFineGridOverItsRange) {
  for (const ElementTable& table : element_tables()) {
    if (!table.rounded_to_nearest) continue;
    const std::vector<double> middles = midpoints(table);
    const auto last = std::bit_cast<std::uint32_t>(2 * largest(table.format));
    const auto first = std::bit_cast<std::uint32_t>(static_cast<float>(middles.front()) / 4);
    std::uint64_t wrong = 0;
    for (std::uint32_t bits = first; bits < last; bits += 257) {
      wrong += encode_nearest(table.format, from_bits(bits)) !=
               nearest_code(table, middles, from_bits(bits));
    }
    EXPECT_EQ(wrong, 0u) << table.name;
  }
}

TEST(MinifloatEncodeNearest, SaturatesWhateverIsAboveTheLargestValue) {
  for (const ElementTable& table : element_tables()) {
    SCOPED_TRACE(table.name);
    const int max = table.format.magnitude_max;
    for (const float x : {largest(table.format), std::nextafter(largest(table.format), kInfinity),
                          std::numeric_limits<float>::max(), kInfinity}) {
      ASSERT_EQ(encode_nearest(table.format, x), max) << x;
      ASSERT_EQ(encode_nearest(table.format, -x), max | table.sign_bit()) << x;
    }
  }
  EXPECT_EQ(encode_nearest(kE4M3, 464.0f), 0x7E);
  EXPECT_EQ(encode_nearest(kE4M3, 464.01f), 0x7E);
  EXPECT_EQ(encode_nearest(kE5M2, 61440.0f), 0x7B);
}

TEST(MinifloatEncodeNearest, KeepsTheSignOfZeroAndOfWhatUnderflows) {
  for (const ElementTable& table : element_tables()) {
    SCOPED_TRACE(table.name);
    const auto half_smallest = static_cast<float>(table.midpoint_above(0));
    for (const float x : {0.0f, std::numeric_limits<float>::denorm_min(),
                          std::numeric_limits<float>::min(), half_smallest}) {
      EXPECT_EQ(encode_nearest(table.format, x), 0) << x;
      EXPECT_EQ(encode_nearest(table.format, -x), table.sign_bit()) << x;
    }
  }
}

TEST(MinifloatEncodeNearest, RoundsToFp4AsPublished) {
  constexpr float kInputs[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 5.01f, -0.26f};
  constexpr float kOutputs[] = {0, 1, 1, 2, 2, 4, 4, 6, -0.5f};
  for (std::size_t i = 0; i < std::size(kInputs); ++i) {
    EXPECT_EQ(decode(kE2M1, encode_nearest(kE2M1, kInputs[i])), kOutputs[i]) << kInputs[i];
  }
}

// NaN loses its sign. Formats without NaN get their largest value, as CUDA and PTX do; ml_dtypes
// has -0 (0x8) for E2M1 instead. E5M2 gets 0x7F as in CUDA; LLVM's APFloat has 0x7E.
TEST(MinifloatEncodeNearest, TurnsNanIntoWhatCudaMakesOfIt) {
  for (const float nan : {kNan, -kNan, from_bits(0x7F800001), from_bits(0xFFFFFFFF)}) {
    EXPECT_EQ(encode_nearest(kE4M3, nan), 0x7F);
    EXPECT_EQ(encode_nearest(kE5M2, nan), 0x7F);
    EXPECT_EQ(encode_nearest(kE2M3, nan), 0x1F);
    EXPECT_EQ(encode_nearest(kE3M2, nan), 0x1F);
    EXPECT_EQ(encode_nearest(kE2M1, nan), 0x07);
    EXPECT_EQ(decode(kE2M1, encode_nearest(kE2M1, nan)), 6.0f);
  }
}

TEST(E8m0Value, IsTwoToTheCodeMinus127AndNanAtTheTop) {
  for (int code = 0; code < 0xFF; ++code) {
    ASSERT_EQ(static_cast<double>(e8m0_value(code)), std::ldexp(1.0, code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(e8m0_value(0xFF)));
}

}  // namespace
}  // namespace leeway::codec
