// Conversions of one element at a time: the definitions, which the vector kernels must match byte
// for byte.
//
// They use only integer operations, and float operations whose inputs and results are normal. So no
// processor mode (flush to zero, denormals are zero) can change a bit.
#pragma once

#include <bit>
#include <cstdint>

#include "leeway/types.h"

namespace leeway::codec {

// Rounds to nearest, ties to even. Overflow becomes infinity; a NaN stays a NaN (quiet, with sign
// and upper payload).
constexpr Half half_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000) {
    half = 0x7E00 | (magnitude >> 13 & 0x1FF);
  } else if (magnitude >=
             0x47800000) {  // 2^16; what lies between 65,520 and 2^16 rounds to infinity below
    half = 0x7C00;
  } else if (magnitude >= 0x38800000) {  // 2^-14, the smallest normal half: move the exponent,
                                         // round the mantissa
    half = (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  } else if (magnitude >=
             0x33000000) {  // 2^-25, half the smallest subnormal: adding 0.5 rounds at 2^-24
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000;
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

// Exact; a signalling NaN becomes quiet.
constexpr float float_from_half(Half value) {
  const std::uint32_t sign = std::uint32_t{value.bits} << 16 & 0x80000000;
  const std::uint32_t magnitude = value.bits & 0x7FFF;
  const std::uint32_t shifted = magnitude << 13;
  if (magnitude > 0x7C00) return std::bit_cast<float>(sign | shifted | 0x7FC00000);
  if (magnitude == 0x7C00) return std::bit_cast<float>(sign | 0x7F800000);
  if (magnitude >= 0x0400) return std::bit_cast<float>(sign | (shifted + 0x38000000));
  // A subnormal is the difference of two normal floats, 2^-14 (1 + m) - 2^-14.
  const float subnormal = std::bit_cast<float>(shifted + 0x38800000) - 0x1p-14f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

// Rounds to nearest, ties to even, subnormals included; overflow and NaN as for half.
constexpr BFloat16 bfloat16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

// Exact: the upper half of the float's bits.
constexpr float float_from_bfloat16(BFloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

// Converts an element of any encodable type to the float that is encoded.
constexpr float as_float(float value) {
  return value;
}
constexpr float as_float(Half value) {
  return float_from_half(value);
}
constexpr float as_float(BFloat16 value) {
  return float_from_bfloat16(value);
}

}  // namespace leeway::codec
