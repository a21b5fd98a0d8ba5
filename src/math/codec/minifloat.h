// Small floating-point elements, one at a time: the definition that the vector kernels must match
// byte for byte.
//
// A magnitude is a code c: with M mantissa bits and smallest normal exponent e0, code c < 2^M means
// c * 2^(e0 - M), a larger one 2^(c div 2^M - 1 + e0) * (1 + (c mod 2^M) / 2^M). Seen as integers,
// codes ascend with their values, so that rounding up is adding one. The same arithmetic covers
// FP8, FP6 and FP4 (OCP OFP8 1.0, OCP MX 1.0), the logarithmic LUQ levels (M = 0) and integers (no
// normals). Only integer operations: no processor mode can change a bit.
#pragma once

#include <bit>
#include <cstdint>

namespace leeway::codec {

struct Minifloat {
  int mantissa_bits;
  int exponent_min;   // exponent of the smallest normal
  int magnitude_max;  // code of the largest finite magnitude
  int code_bits;      // sign included
  int nan_code;  // code of NaN in a plain conversion; CUDA's choice, also if the format has no NaN

  friend constexpr bool operator==(const Minifloat&, const Minifloat&) = default;
};

inline constexpr Minifloat kE4M3{3, -6, 0x7E, 8, 0x7F};
inline constexpr Minifloat kE5M2{2, -14, 0x7B, 8, 0x7F};
inline constexpr Minifloat kE2M3{3, 0, 0x1F, 6, 0x1F};
inline constexpr Minifloat kE3M2{2, -2, 0x1F, 6, 0x1F};
inline constexpr Minifloat kE2M1{1, 0, 0x7, 4, 0x7};
inline constexpr Minifloat kE3M0{0, 0, 0x7, 4, 0x0};    // LUQ: 0, 1, 2, 4, ... 64
inline constexpr Minifloat kInteger8{7, 7, 127, 8, 0};  // 0, 1, ... 127, sign and magnitude

// Value of a finite magnitude code.
constexpr float magnitude_value(const Minifloat& format, int code) {
  const int steps = code >> format.mantissa_bits;
  const int fraction = code & ((1 << format.mantissa_bits) - 1);
  const int significand = steps == 0 ? fraction : fraction + (1 << format.mantissa_bits);
  const int exponent = (steps == 0 ? 0 : steps - 1) + format.exponent_min - format.mantissa_bits;
  // |exponent| <= 16 and significand < 256: exact, and a normal float.
  return static_cast<float>(significand) *
         std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// The largest finite value.
constexpr float largest(const Minifloat& format) {
  return magnitude_value(format, format.magnitude_max);
}

namespace internal {

// `count`: |value| in quanta of its binade times 2^-fraction_bits, to nearest, ties to even.
// `binades`: how many binades the value lies above the smallest normal. `magnitude`: the bits of a
// finite float >= 0.
struct Quanta {
  std::uint32_t count = 0;
  int binades = 0;
};
constexpr Quanta quanta_of(const Minifloat& format, std::uint32_t magnitude, int fraction_bits) {
  const std::uint32_t field = magnitude >> 23;
  const int exponent = field == 0 ? -126 : static_cast<int>(field) - 127;
  const std::uint64_t significand = (magnitude & 0x7FFFFF) | (field == 0 ? 0u : 0x800000u);
  const int grid = exponent > format.exponent_min ? exponent : format.exponent_min;
  const int shift = grid - exponent + 23 - format.mantissa_bits -
                    fraction_bits;  // >= 23 - 10 - 16 for half with 16 bits
  Quanta quanta{0, grid - format.exponent_min};
  if (shift <= 0) {
    quanta.count = static_cast<std::uint32_t>(significand << -shift);
  } else if (shift <= 25) {
    const std::uint64_t half = (std::uint64_t{1} << (shift - 1)) - 1;
    quanta.count =
        static_cast<std::uint32_t>((significand + half + (significand >> shift & 1)) >> shift);
  }
  return quanta;
}

constexpr std::uint32_t clamped_magnitude(const Minifloat& format, float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF;
  const std::uint32_t max = std::bit_cast<std::uint32_t>(largest(format));
  return bits < max ? bits : max;
}

constexpr int with_sign(const Minifloat& format, float value, int magnitude) {
  const int negative = static_cast<int>(std::bit_cast<std::uint32_t>(value) >> 31);
  return magnitude | negative << (format.code_bits - 1);
}

}  // namespace internal

constexpr bool is_nan(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF) > 0x7F800000;
}

// Rounds to nearest, ties to the even code; saturates, infinities included. NaN becomes nan_code,
// without sign. Not for E3M0: it has no mantissa bit, so its ties would go up.
constexpr int encode_nearest(const Minifloat& format, float value) {
  if (is_nan(value)) return format.nan_code;
  const auto quanta = internal::quanta_of(format, internal::clamped_magnitude(format, value), 0);
  return internal::with_sign(
      format, value, (quanta.binades << format.mantissa_bits) + static_cast<int>(quanta.count));
}

// Rounds stochastically: adds the random byte to the fraction of the quantum, rounded to 1/256, and
// the carry rounds up. Values of the format stay as they are. Over a uniform byte the mean is
// within quantum/512 of the value. Finite values only.
constexpr int encode_stochastic(const Minifloat& format, float value, std::uint8_t random) {
  const auto quanta = internal::quanta_of(format, internal::clamped_magnitude(format, value), 8);
  const int rounded = static_cast<int>((quanta.count + random) >> 8);
  return internal::with_sign(format, value, (quanta.binades << format.mantissa_bits) + rounded);
}

// Returns the value of any code of code_bits bits. E4M3's S.1111.111 is NaN; E5M2's exponent 31
// holds infinities and NaN.
constexpr float decode(const Minifloat& format, int code) {
  const int sign_bit = 1 << (format.code_bits - 1);
  const int magnitude = code & (sign_bit - 1);
  const std::uint32_t sign = (code & sign_bit) != 0 ? 0x80000000u : 0u;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude_value(format, magnitude));
  if (magnitude > format.magnitude_max) {
    const bool infinite = format == kE5M2 && magnitude == 0x7C;
    bits = infinite ? 0x7F800000u : 0x7FC00000u;
  }
  return std::bit_cast<float>(sign | bits);
}

// The value of an E8M0 code: 2^(code - 127), exact also for code 0, whose value is subnormal; 0xFF
// gives NaN.
constexpr float e8m0_value(int code) {
  if (code == 0xFF) return std::bit_cast<float>(0x7FC00000u);
  return std::bit_cast<float>(code == 0 ? 0x400000u : static_cast<std::uint32_t>(code) << 23);
}

}  // namespace leeway::codec
