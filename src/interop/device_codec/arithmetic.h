// The arithmetic of device codecs on 16 elements, for device and host compilers alike. It converts
// floats to codes and back, with the bits of src/math/codec.
//
// Scales, random bits and conversions to 16 bits are src/math/codec's own functions (block_scale.h,
// random_bytes.h, element.h), which device compilers take because they are constexpr. Only the work
// on each element of a small format is written anew here. Compilers must neither fuse products with
// sums nor flush subnormals: -fmad=false -ftz=false.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

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

// The codes of a slice as they lie in a packet, with element 0 in the lowest bits of word 0. The
// struct is also used for elements of a tensor, which have 16 or 32 bits.
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

// Finds the largest magnitude of some floats. Bits are compared as integers, so that infinities and
// NaN are the largest. As signed integers, the largest is the largest positive float. As unsigned
// integers, the largest is the negative float of the largest magnitude. So no sign has to be
// removed.
class LargestMagnitude {
 public:
  LEEWAY_GPU void add(std::uint32_t bits) {
    const auto with_sign = static_cast<std::int32_t>(bits);
    largest_positive_ = with_sign > largest_positive_ ? with_sign : largest_positive_;
    largest_negative_ = bits > largest_negative_ ? bits : largest_negative_;
  }
  LEEWAY_GPU std::uint32_t bits() const {
    const auto positive = static_cast<std::uint32_t>(largest_positive_);
    const std::uint32_t negative = largest_negative_ & 0x7FFFFFFF;
    return positive > negative ? positive : negative;
  }

 private:
  std::int32_t largest_positive_ = 0;
  std::uint32_t largest_negative_ = 0;  // if no float is negative, the largest positive one
};

LEEWAY_GPU std::uint32_t largest_magnitude(const Slice& slice) {
  LargestMagnitude largest;
  LEEWAY_UNROLL
  for (const float value : slice.values) largest.add(std::bit_cast<std::uint32_t>(value));
  return largest.bits();
}

// ---- elements to codes ----

// Adding this number, 2^23, rounds a small positive float to an integer, to nearest with ties to
// even. The lowest bits of the sum are that integer.
inline constexpr float kOntoIntegers = 0x1p23f;

// Returns the E2M1 code of a magnitude below 2^7, in the low 16 bits of the result. The code is in
// units of 2^-fraction_bits, rounded to the nearest unit. It may exceed the largest code, 7.
//
// The code as a function of the magnitude is the least of three straight lines, each flatter than
// the one before. Each line is rounded before the lines are compared, which is right since rounding
// keeps order. Bits are compared in place of floats, which is right since all are positive.
template <int fraction_bits>
LEEWAY_GPU std::uint32_t e2m1_sum(float magnitude) {
  constexpr auto kUnit = static_cast<float>(1 << fraction_bits);
  const auto line = [&](float slope, float offset) {
    return std::bit_cast<std::uint32_t>(scaled_plus(magnitude, slope, kOntoIntegers + offset));
  };
  const std::uint32_t below_two = line(2 * kUnit, 0.0f);
  const std::uint32_t below_four = line(kUnit, 2 * kUnit);
  const std::uint32_t above = line(kUnit / 2, 4 * kUnit);
  return smaller(smaller(below_two, below_four), above);
}

// Returns the code of any finite magnitude in a format other than E2M1, in units of
// 2^-fraction_bits, rounded to the nearest unit. A larger magnitude gets the largest finite code.
template <Minifloat element, int fraction_bits>
LEEWAY_GPU std::uint32_t fine_code(float magnitude) {
  // Adds a power of two under which the last bit of the sum is worth one unit.
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

// The largest magnitude that e2m1_codes() takes, in units of the scale.
inline constexpr float kE2m1Most = 64.0f;

// The inverse of a scale as the sum of two floats, as in BlockScale (block_scale.h).
struct Inverse {
  float inverse = 1.0f;
  float rest = 0.0f;
};

// Returns an element divided by its scale. `rests` says that Inverse::rest may differ from 0
// (block_scale.h).
template <bool rests>
LEEWAY_GPU float over_scale(float value, const Inverse& scale) {
  if constexpr (rests) return fused(value, scale.inverse, value * scale.rest);
  return value * scale.inverse;
}

// Returns E2M1 codes. Two elements share a word until they are packed, which halves the
// instructions.
template <bool stochastic, bool rests>
LEEWAY_GPU SliceCodes<4> e2m1_codes(const Slice& slice, const Inverse& scale,
                                    const PhiloxCounter& random) {
  constexpr int kFractionBits = stochastic ? 8 : 0;
  constexpr std::uint32_t kLargest = std::uint32_t{0x00070007} << kFractionBits;
  // Place of a code's sign bit within its half of a word.
  constexpr int kSignAt = kFractionBits + 3;
  constexpr std::uint32_t kSigns = std::uint32_t{0x00010001} << kSignAt;
  // Returns the codes of elements i and i + 2, one in each half of the word: in the low bits of
  // bytes 0 and 2, or, if fraction bits lie below the codes, of bytes 1 and 3.
  const auto two_codes = [&](unsigned i) {
    const float a = slice.values[i];
    const float b = slice.values[i + 2];
    const auto sum = [&](float value) {
      return e2m1_sum<kFractionBits>(over_scale<rests>(magnitude_of(value), scale));
    };
    std::uint32_t sums = smaller_halves(bytes_of_two(sum(a), sum(b), 0x5410), kLargest);
    if constexpr (stochastic) sums += bytes_of_two(random[i / 4], 0, i % 2 == 0 ? 0x4240 : 0x4341);
    const std::uint32_t signs =
        bytes_of_two(std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(b), 0xFFBB);
    return (sums & ~kSigns) | (signs & kSigns);
  };
  constexpr std::uint32_t kBytes = stochastic ? 0x7531 : 0x6420;
  SliceCodes<4> codes{};
  LEEWAY_UNROLL
  for (unsigned word = 0; word < codes.kWords; ++word) {
    const unsigned i = 8 * word;
    const std::uint32_t even = bytes_of_two(two_codes(i), two_codes(i + 4), kBytes);
    const std::uint32_t odd = bytes_of_two(two_codes(i + 1), two_codes(i + 5), kBytes);
    codes.words[word] = even | odd << 4;
  }
  return codes;
}

// Returns each element divided by its scale, at most kE2m1Most in magnitude.
template <bool rests>
LEEWAY_GPU Slice limited(const Slice& slice, const Inverse& scale) {
  Slice limited;
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i) {
    const float scaled = over_scale<rests>(slice.values[i], scale);
    const float magnitude = smaller(magnitude_of(scaled), kE2m1Most);
    limited.values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) |
                                             (std::bit_cast<std::uint32_t>(scaled) & 0x80000000));
  }
  return limited;
}

// Returns the codes of the elements divided by their scale, rounded to nearest, or by byte j of
// `random` for element j. If the inverse is 0, the block is blank (block_scale.h) and its codes are
// 0. If `fits`, the scale was chosen for these elements, so none exceeds its range by much.
// Otherwise the scale was chosen for a bound, which elements may exceed by any factor.
template <Minifloat element, bool stochastic, bool rests>
LEEWAY_GPU SliceCodes<element.code_bits> codes_of(const Slice& slice, const Inverse& scale,
                                                  bool fits, const PhiloxCounter& random) {
  SliceCodes<element.code_bits> codes{};
  if (scale.inverse == 0.0f) return codes;
  if constexpr (element == codec::kE2M1) {
    return fits ? e2m1_codes<stochastic, rests>(slice, scale, random)
                : e2m1_codes<stochastic, false>(limited<rests>(slice, scale), Inverse{}, random);
  } else {
    constexpr int kSignAt = element.code_bits - 1;
    LEEWAY_UNROLL
    for (unsigned i = 0; i < kSliceElements; ++i) {
      const float scaled = over_scale<rests>(slice.values[i], scale);
      const float magnitude = magnitude_of(scaled);
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
}

// ---- codes to values ----

// Shifts to the left by `bits`, or, if `bits` is negative, to the right by -bits.
template <int bits>
LEEWAY_GPU std::uint32_t moved(std::uint32_t word) {
  if constexpr (bits >= 0) {
    return word << bits;
  } else {
    return word >> -bits;
  }
}

// Returns the value of any code of the format. The code lies `at` bits up in the word.
template <Minifloat element, int at = 0>
LEEWAY_GPU float code_value(std::uint32_t word) {
  constexpr std::uint32_t kSignBit = std::uint32_t{1} << (element.code_bits - 1);
  constexpr std::uint32_t kLargestCode = element.magnitude_max;
  constexpr bool kHasInfinity = element == codec::kE5M2;
  // The code's exponent and mantissa, put where a float has these, are the value divided by kPower.
  // Small codes pass through subnormal floats, which cost a device nothing.
  constexpr int kShift = 23 - element.mantissa_bits;
  constexpr float kPower =
      std::bit_cast<float>(static_cast<std::uint32_t>(element.exponent_min + 126 + 127) << 23);
  const std::uint32_t magnitude = moved<kShift - at>(word) & (kSignBit - 1) << kShift;
  float value = std::bit_cast<float>(magnitude) * kPower;
  if constexpr (kLargestCode < kSignBit - 1) {
    const bool infinite = kHasInfinity && magnitude == (kLargestCode + 1) << kShift;
    if (magnitude > kLargestCode << kShift)
      value = std::bit_cast<float>(infinite ? 0x7F800000u : 0x7FC00000u);
  }
  const std::uint32_t sign = moved<32 - element.code_bits - at>(word) & 0x80000000;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

// Returns the values of E2M1 codes. Each value is a bfloat16, the upper half of a float. One
// instruction looks up the upper bytes of four values, another one the lower bytes.
LEEWAY_GPU Slice e2m1_values(const SliceCodes<4>& codes) {
  constexpr std::uint32_t kUpper[2] = {0x3F3F3F00, 0x40404040};  // for 0, 0.5, 1, 1.5; 2, 3, 4, 6
  constexpr std::uint32_t kLower[2] = {0xC0800000, 0xC0804000};
  Slice slice;
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; i += 4) {
    const std::uint32_t word = codes.words[i / 8];
    const bool low = i % 8 == 0;
    const std::uint32_t selector = word >> (low ? 0 : 16) & 0x7777;
    // A byte for each of four codes: ones if the code's sign bit (the top bit) is set, else zeros.
    const std::uint32_t signs = bytes_of_two(word << 4, word, low ? 0xD9C8 : 0xFBEA);
    const std::uint32_t upper = bytes_of_two(kUpper[0], kUpper[1], selector) | (signs & 0x80808080);
    const std::uint32_t lower = bytes_of_two(kLower[0], kLower[1], selector);
    const std::uint32_t two[2] = {bytes_of_two(lower, upper, 0x5140),
                                  bytes_of_two(lower, upper, 0x7362)};
    LEEWAY_UNROLL
    for (unsigned j = 0; j < 4; ++j) {
      slice.values[i + j] =
          std::bit_cast<float>(j % 2 == 0 ? two[j / 2] << 16 : two[j / 2] & 0xFFFF0000);
    }
  }
  return slice;
}

template <Minifloat element>
LEEWAY_GPU Slice values_of(const SliceCodes<element.code_bits>& codes) {
  if constexpr (element == codec::kE2M1) return e2m1_values(codes);
  constexpr int kBits = element.code_bits;
  Slice slice;
  // A code that lies within one word takes one shift, by a number of bits that the compiler knows.
  const auto value = [&]<unsigned i>(std::integral_constant<unsigned, i>) {
    constexpr int kAt = static_cast<int>(i * kBits % 32);
    if constexpr (kAt + kBits <= 32) {
      slice.values[i] = code_value<element, kAt>(codes.words[i * kBits / 32]);
    } else {
      slice.values[i] = code_value<element>(get_code(codes, i));
    }
  };
  [&]<unsigned... i>(std::integer_sequence<unsigned, i...>) {
    (value(std::integral_constant<unsigned, i>()), ...);
  }
  (std::make_integer_sequence<unsigned, kSliceElements>());
  return slice;
}

// ---- elements of 16 bits ----

// Rounds to nearest, to Half or BFloat16.
template <typename Element>
LEEWAY_GPU std::uint32_t nearest_bits(float value) {
  if constexpr (std::is_same_v<Element, Half>) {
    return codec::half_from_float(value).bits;
  } else {
    return codec::bfloat16_from_float(value).bits;
  }
}

// Rounds by 16 random bits. What a bfloat16 leaves out is the lower half of the float. So the
// random bits are added to this half, and the carry rounds up.
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

// Rounds elements 0 .. 7 by the 16-bit words of `low`, the others by those of `high`.
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

// Start value of a sum. Adding a term to it gives exactly that term, also for 0 of either sign.
inline constexpr float kNothing = -0.0f;

// Adds weight x term to the sum, in two rounded steps, never fused.
LEEWAY_GPU void add_weighted(float weight, const Slice& term, Slice& sum) {
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i) sum.values[i] += weight * term.values[i];
}

}  // namespace leeway::device_codec
