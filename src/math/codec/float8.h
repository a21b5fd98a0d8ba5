// Tensors of FP8 elements: conversion to and from float32, in which they are summed. (Codecs fp8_*,
// which scale their elements, are of the block-scaled family: scaled.h.)
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/minifloat.h"
#include "leeway/types.h"

namespace leeway::codec {

// The definition of converting one element: to nearest, ties to even. A finite value saturates. An
// infinity stays one in E5M2 and saturates in E4M3, which has none. NaN becomes 0x7F.
constexpr F8E4M3 f8e4m3_from_float(float value) {
  return {static_cast<std::uint8_t>(encode_nearest(kE4M3, value))};
}
constexpr F8E5M2 f8e5m2_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t infinity = (bits & 0x7FFFFFFF) == 0x7F800000 ? (bits >> 24 & 0x80) | 0x7C : 0;
  return {static_cast<std::uint8_t>(infinity != 0 ? infinity : encode_nearest(kE5M2, value))};
}
// The conversion is exact.
constexpr float float_from_f8(F8E4M3 value) {
  return decode(kE4M3, value.bits);
}
constexpr float float_from_f8(F8E5M2 value) {
  return decode(kE5M2, value.bits);
}

// The values of all codes.
constexpr std::array<float, 256> float8_values(const Minifloat& element) {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code)
    values[static_cast<std::size_t>(code)] = decode(element, code);
  return values;
}
inline constexpr std::array<float, 256> kValuesE4M3 = float8_values(kE4M3);
inline constexpr std::array<float, 256> kValuesE5M2 = float8_values(kE5M2);

// `type` is f8e4m3 or f8e5m2. An encoded element takes one byte.
void encode_float8(DataType type, std::span<const float> in, std::byte* out);
void decode_float8(DataType type, const std::byte* in, std::span<float> out);

}  // namespace leeway::codec
