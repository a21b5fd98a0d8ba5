// fp16 and bf16 by stochastic rounding: 16 random bits an element. Infinities and NaN are encoded
// as by rounding to nearest. Values that rounding to nearest keeps finite stay finite.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/codec.h"
#include "codec/element.h"
#include "codec/minifloat.h"

namespace leeway::codec {

// Codec::fp16 or bf16. The random words of block b of 16 elements (random_bytes.h) are the outputs
// of draw 0 for its elements 0 .. 7 and of draw 1 for 8 .. 15, as little-endian 16-bit words in
// order.
void encode_floats_stochastic(Codec codec, std::span<const float> in, const Place& place,
                              std::byte* out);

namespace internal {

inline constexpr Minifloat kHalf{10, -14, 0x7BFF, 16, 0x7E00};
inline constexpr Minifloat kBFloat16{7, -126, 0x7F7F, 16, 0x7FC0};

// Bits of the largest finite values, 65504 and (2 - 2^-7) 2^127, as floats.
inline constexpr std::uint32_t kHalfMax = 0x477FE000;
inline constexpr std::uint32_t kBFloat16Max = 0x7F7F0000;

constexpr std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF;
}

// Adds the random word to the fraction of the quantum, rounded to 2^-16. The carry rounds up.
constexpr std::uint16_t round_stochastically(const Minifloat& format, float value,
                                             std::uint16_t random) {
  const Quanta quanta = quanta_of(format, magnitude_bits(value), 16);
  const int rounded = static_cast<int>((quanta.count + random) >> 16);
  return static_cast<std::uint16_t>(
      with_sign(format, value, (quanta.binades << format.mantissa_bits) + rounded));
}

}  // namespace internal

// Encodes one element. This is the definition, and the vector kernels must match it bit for bit.
// The mean over all random words is within 2^-17 of the format's step from the value. Representable
// values stay as they are. A value above the largest finite one is rounded to nearest, because
// stochastic rounding could make it infinite even if it is only just above.
constexpr Half half_from_float(float value, std::uint16_t random) {
  if (internal::magnitude_bits(value) > internal::kHalfMax) return half_from_float(value);
  constexpr Minifloat kFormat = internal::kHalf;  // a copy, as in block_scale.h
  return {internal::round_stochastically(kFormat, value, random)};
}

constexpr BFloat16 bfloat16_from_float(float value, std::uint16_t random) {
  if (internal::magnitude_bits(value) > internal::kBFloat16Max) return bfloat16_from_float(value);
  return {internal::round_stochastically(internal::kBFloat16, value, random)};
}

}  // namespace leeway::codec
