// Compares the arithmetic of elements with its definition in src/math/codec/minifloat.h.
#include "device_codec/arithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace leeway::device_codec {
namespace {

// Calls `check` with each element format as a constant of a type.
template <typename Check>
void for_each_element(Check check) {
  check(std::integral_constant<const Minifloat*, &codec::kE4M3>());
  check(std::integral_constant<const Minifloat*, &codec::kE5M2>());
  check(std::integral_constant<const Minifloat*, &codec::kE2M3>());
  check(std::integral_constant<const Minifloat*, &codec::kE3M2>());
  check(std::integral_constant<const Minifloat*, &codec::kE2M1>());
}

constexpr std::uint32_t kStride = 4099;  // prime: every exponent with all kinds of mantissas
constexpr std::uint32_t kInfinity = 0x7F800000;

// Returns the code by the path for any format, or by E2M1's own path.
template <Minifloat element, int fraction_bits>
std::uint32_t saturated_code(float magnitude) {
  if constexpr (element == codec::kE2M1) {
    const std::uint32_t code = e2m1_sum<fraction_bits>(smaller(magnitude, kE2m1Most)) -
                               std::bit_cast<std::uint32_t>(kOntoIntegers);
    return smaller(code, std::uint32_t{7} << fraction_bits);
  } else {
    return fine_code<element, fraction_bits>(magnitude);
  }
}

template <Minifloat element>
void expect_codes_of(float magnitude) {
  const std::uint32_t nearest = saturated_code<element, 0>(magnitude);
  ASSERT_EQ(static_cast<int>(nearest), codec::encode_nearest(element, magnitude)) << magnitude;
  const std::uint32_t fine = saturated_code<element, 8>(magnitude);
  for (const std::uint8_t byte : {0, 1, 127, 128, 255}) {
    ASSERT_EQ(static_cast<int>((fine + byte) >> 8),
              codec::encode_stochastic(element, magnitude, byte))
        << magnitude << " and byte " << int{byte};
  }
}

TEST(FineCode, IsThatOfTheDefinitionForAStrideOfFloats) {
  for_each_element([](auto constant) {
    constexpr Minifloat element = *decltype(constant)::value;
    for (std::uint32_t bits = 0; bits <= kInfinity; bits += kStride)
      expect_codes_of<element>(std::bit_cast<float>(bits));
    expect_codes_of<element>(std::numeric_limits<float>::infinity());
  });
}

TEST(FineCode, IsThatOfTheDefinitionAroundTiesOfFractions) {
  for_each_element([](auto constant) {
    constexpr Minifloat element = *decltype(constant)::value;
    for (int code = 0; code < element.magnitude_max; ++code) {
      const float low = codec::magnitude_value(element, code);
      const float quantum = codec::magnitude_value(element, code + 1) - low;
      for (int part = 0; part < 512; ++part) {  // halves of 1/256 quantum
        const float tie = low + quantum * static_cast<float>(part) / 512;
        for (const float towards : {0.0f, tie, 1e9f})
          expect_codes_of<element>(std::nextafter(tie, towards));
      }
    }
  });
}

TEST(CodeValue, IsThatOfTheDefinitionForEveryCode) {
  for_each_element([](auto constant) {
    constexpr Minifloat element = *decltype(constant)::value;
    for (int code = 0; code < 1 << element.code_bits; ++code) {
      const float defined = codec::decode(element, code);
      const float value = code_value<element>(static_cast<std::uint32_t>(code));
      if (std::isnan(defined)) {
        EXPECT_TRUE(std::isnan(value)) << code;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(defined))
            << code;
      }
    }
  });
}

TEST(LargestMagnitude, IsThatOfEitherSign) {
  const auto of = [](std::initializer_list<float> values) {
    LargestMagnitude largest;
    for (const float value : values) largest.add(std::bit_cast<std::uint32_t>(value));
    return largest.bits();
  };
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(of({}), 0u);
  EXPECT_EQ(of({-0.0f}), 0u);
  EXPECT_EQ(of({1.0f, -2.0f, 0.5f}), bits(2.0f));
  EXPECT_EQ(of({3.0f, -2.0f, 0.5f}), bits(3.0f));
  EXPECT_EQ(of({-3.0f, -2.0f}), bits(3.0f));
  EXPECT_EQ(of({3.0f, -kNan, 1.0f}), bits(kNan));
  EXPECT_EQ(of({-std::bit_cast<float>(kInfinity), 1.0f}), kInfinity);
}

template <int bits>
void expect_codes_come_back() {
  SliceCodes<bits> codes{};
  const auto code_of = [](unsigned i) { return (i * 2654435761u + 7) >> 5 & ((1u << bits) - 1); };
  for (unsigned i = 0; i < kSliceElements; ++i) put_code(codes, i, code_of(i));
  for (unsigned i = 0; i < kSliceElements; ++i) EXPECT_EQ(get_code(codes, i), code_of(i)) << bits;
}

TEST(SliceCodes, KeepCodesOfEveryLength) {
  expect_codes_come_back<4>();
  expect_codes_come_back<6>();
  expect_codes_come_back<8>();
  expect_codes_come_back<16>();
}

TEST(CodesOf, ABlankBlockHasCodesOfZeroWhateverItsElements) {
  Slice slice{};
  slice.values[0] = -1.0f;
  slice.values[1] = std::numeric_limits<float>::quiet_NaN();
  slice.values[2] = -std::numeric_limits<float>::infinity();
  const auto codes = codes_of<codec::kE2M1, false, false>(slice, {0.0f, 0.0f}, true, {});
  EXPECT_EQ(codes.words[0], 0u);
  EXPECT_EQ(codes.words[1], 0u);
}

}  // namespace
}  // namespace leeway::device_codec
