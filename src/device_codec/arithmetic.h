// The arithmetic of device codecs on 16 elements, for device and host compilers alike: from floats
// to codes and back, with the bits of src/codec.
//
// Scales, random bits and conversions to 16 bits are src/codec's own functions (block_scale.h,
// random_bytes.h, element.h), which device compilers take because they are constexpr. Only what
// each element of a small format costs is written anew here. Compilers must neither fuse products
// with sums nor flush subnormals: -fmad=false -ftz=false.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "base/philox.h"
#include "codec/element.h"
#include "codec/minifloat.h"
#include "codec/stochastic_floats.h"
#include "device_codec/gpu.h"

namespace leeway::device_codec {

using codec::Minifloat;

// Elements of one lane in one step: those that share a draw of random bytes, or a block of NVFP4.
inline constexpr unsigned kSliceElements = 16;

struct Slice {
  float values[kSliceElements];
};

// The codes of a slice as they lie in a packet: element 0 in the lowest bits of word 0. Also the
// elements of a tensor, which have 16 or 32 bits.
template <int bits>
struct SliceCodes {
  static constexpr unsigned kWords = kSliceElements * bits / 32;
  std::uint32_t words[kWords];
};

template <int bits>
LEEWAY_GPU void put_code(SliceCodes<bits>& codes, unsigned element, std::uint32_t code) {
  const unsigned word = element * bits / 32;
  const unsigned shift = element * bits % 32;
  codes.words[word] |= code << shift;
  if constexpr (32 % bits != 0) {
    if (shift + bits > 32) codes.words[word + 1] |= code >> (32 - shift);
  }
}

template <int bits>
LEEWAY_GPU std::uint32_t get_code(const SliceCodes<bits>& codes, unsigned element) {
  const unsigned word = element * bits / 32;
  const unsigned shift = element * bits % 32;
  std::uint32_t code = codes.words[word] >> shift;
  if constexpr (32 % bits != 0) {
    if (shift + bits > 32) code |= codes.words[word + 1] << (32 - shift);
  }
  return bits == 32 ? code : code & ((std::uint64_t{1} << bits) - 1);
}

LEEWAY_GPU std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF;
}

// As integers, so that infinities and NaN come out on top.
LEEWAY_GPU std::uint32_t largest_magnitude(const Slice& slice) {
  std::uint32_t largest = 0;
  LEEWAY_UNROLL
  for (const float value : slice.values) {
    const std::uint32_t bits = magnitude_bits(value);
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

// ---- elements to codes ----

// Adding it rounds a small float to an integer, to nearest with ties to even. The sum's lowest bits
// are that integer.
inline constexpr float kOntoIntegers = 0x1p23f;

// The code of a finite magnitude, in units of 2^-fraction_bits: code and fraction as one integer,
// to the nearest unit. Saturates at the largest finite code.
template <Minifloat element, int fraction_bits>
LEEWAY_GPU std::uint32_t fine_code(float magnitude) {
  constexpr auto kUnit = static_cast<float>(1 << fraction_bits);
  if constexpr (element == codec::kE2M1) {
    // Codes over values are three straight pieces, each flatter than the one before: the code is
    // the least of three lines. Rounding keeps the order of values, so lines may be rounded first.
    const float below_two = scaled_plus(magnitude, 2 * kUnit, kOntoIntegers);
    const float below_four = scaled_plus(magnitude, kUnit, kOntoIntegers + 2 * kUnit);
    const float above = scaled_plus(magnitude, kUnit / 2, kOntoIntegers + 4 * kUnit);
    const float code = smaller(smaller(below_two, below_four), above);
    return std::bit_cast<std::uint32_t>(smaller(code, kOntoIntegers + 7 * kUnit)) -
           std::bit_cast<std::uint32_t>(kOntoIntegers);
  } else {
    // A power of two is added under which the last bit of the sum is worth one unit.
    constexpr int kShift = 23 - element.mantissa_bits - fraction_bits;
    constexpr std::uint32_t kExponentMin = static_cast<std::uint32_t>(element.exponent_min + 127)
                                           << 23;
    constexpr float kLimit = codec::largest(element);
    const float clamped = smaller(magnitude, kLimit);
    const std::uint32_t exponent = std::bit_cast<std::uint32_t>(clamped) & 0x7F800000;
    const std::uint32_t grid = exponent > kExponentMin ? exponent : kExponentMin;
    const std::uint32_t power = grid + (std::uint32_t{kShift} << 23);
    const float sum = clamped + std::bit_cast<float>(power);
    return ((grid - kExponentMin) >> kShift) + std::bit_cast<std::uint32_t>(sum) - power;
  }
}

// The elements times `inverse`, rounded: to nearest, or by byte j of `random` for element j.
// Inverse 0: the block is blank (block_scale.h), and its codes are 0 whatever its elements are.
template <Minifloat element, bool stochastic>
LEEWAY_GPU SliceCodes<element.code_bits> codes_of(const Slice& slice, float inverse,
                                                  const PhiloxCounter& random) {
  constexpr int kSignAt = element.code_bits - 1;
  SliceCodes<element.code_bits> codes{};
  if (inverse == 0.0f) return codes;
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i) {
    const float scaled = slice.values[i] * inverse;
    const auto magnitude = std::bit_cast<float>(magnitude_bits(scaled));
    std::uint32_t code = 0;
    if constexpr (stochastic) {
      const std::uint32_t byte = random[i / 4] >> (8 * (i % 4)) & 0xFF;
      code = (fine_code<element, 8>(magnitude) + byte) >> 8;
    } else {
      code = fine_code<element, 0>(magnitude);
    }
    const std::uint32_t sign = std::bit_cast<std::uint32_t>(scaled) >> 31;
    put_code(codes, i, code | sign << kSignAt);
  }
  return codes;
}

// ---- codes to values ----

// Any code of the format.
template <Minifloat element>
LEEWAY_GPU float code_value(std::uint32_t code) {
  constexpr std::uint32_t kSignBit = std::uint32_t{1} << (element.code_bits - 1);
  constexpr std::uint32_t kLargestCode = element.magnitude_max;
  constexpr bool kHasInfinity = element == codec::kE5M2;
  // The code's bits, put where a float has its own, are the value but for a power of two. Small
  // codes pass through subnormal floats, which cost a device nothing.
  constexpr int kShift = 23 - element.mantissa_bits;
  constexpr float kPower =
      std::bit_cast<float>(static_cast<std::uint32_t>(element.exponent_min + 126 + 127) << 23);
  const std::uint32_t magnitude = code & (kSignBit - 1);
  float value = std::bit_cast<float>(magnitude << kShift) * kPower;
  if constexpr (kLargestCode < kSignBit - 1) {
    const bool infinite = kHasInfinity && magnitude == kLargestCode + 1;
    if (magnitude > kLargestCode)
      value = std::bit_cast<float>(infinite ? 0x7F800000u : 0x7FC00000u);
  }
  constexpr int kToTop = 32 - element.code_bits;
  const std::uint32_t sign = (code & kSignBit) << kToTop;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

template <Minifloat element>
LEEWAY_GPU Slice values_of(const SliceCodes<element.code_bits>& codes) {
  Slice slice;
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i)
    slice.values[i] = code_value<element>(get_code(codes, i));
  return slice;
}

// ---- elements of 16 bits ----

// Half or BFloat16, to nearest.
template <typename Element>
LEEWAY_GPU std::uint32_t nearest_bits(float value) {
  if constexpr (std::is_same_v<Element, Half>) {
    return codec::half_from_float(value).bits;
  } else {
    return codec::bfloat16_from_float(value).bits;
  }
}

// By 16 random bits. The fraction of a bfloat16's quantum is the lower half of the float, and the
// carry rounds up.
template <typename Element>
LEEWAY_GPU std::uint32_t stochastic_bits(float value, std::uint16_t random) {
  if constexpr (std::is_same_v<Element, Half>) {
    return codec::half_from_float(value, random).bits;
  } else {
    if (magnitude_bits(value) > codec::internal::kBFloat16Max)
      return codec::bfloat16_from_float(value).bits;
    return (std::bit_cast<std::uint32_t>(value) + random) >> 16;
  }
}

template <typename Element>
LEEWAY_GPU SliceCodes<16> nearest(const Slice& slice) {
  SliceCodes<16> codes{};
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i)
    put_code(codes, i, nearest_bits<Element>(slice.values[i]));
  return codes;
}

// The words of `low` round elements 0 .. 7, those of `high` the others.
template <typename Element>
LEEWAY_GPU SliceCodes<16> stochastic(const Slice& slice, const PhiloxCounter& low,
                                     const PhiloxCounter& high) {
  SliceCodes<16> codes{};
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i) {
    const PhiloxCounter& draw = i < 8 ? low : high;
    const auto random = static_cast<std::uint16_t>(draw[i % 8 / 2] >> (16 * (i % 2)));
    put_code(codes, i, stochastic_bits<Element>(slice.values[i], random));
  }
  return codes;
}

template <typename Element>
LEEWAY_GPU Slice floats_of(const SliceCodes<16>& codes) {
  Slice slice;
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i)
    slice.values[i] = codec::as_float(Element{static_cast<std::uint16_t>(get_code(codes, i))});
  return slice;
}

// ---- sums ----

// sum + weight x term, or the product alone. Two rounded steps, never fused.
LEEWAY_GPU void add_weighted(bool first, float weight, const Slice& term, Slice& sum) {
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i) {
    const float product = weight * term.values[i];
    sum.values[i] = first ? product : sum.values[i] + product;
  }
}

}  // namespace leeway::device_codec
