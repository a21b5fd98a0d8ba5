// The scale rules, one block at a time. They turn a block's largest magnitude into the stored scale
// and the factor on elements, and back. README.md, "Scales", has the reason of each rule.
// Magnitudes are float bits without sign. The functions need IEEE arithmetic (float_mode.h). They
// are constexpr, so that compilers for devices take them too (src/interop/device_codec).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "codec/minifloat.h"
#include "leeway/codec.h"

namespace leeway::codec {

inline constexpr std::uint32_t kInfinityBits = 0x7F800000;
inline constexpr float kFloatMax = std::numeric_limits<float>::max();

// Scale of one block, as it is stored and as a factor. A block that is all zero, too small for its
// scale, or not finite, is blank: its inverse and its codes are 0.
//
// Stochastic rounding multiplies by the inverse. Rounding to nearest computes for an element x
//   fma(x, inverse, x * rest)
// where inverse + rest is 1/scale to 2^-46 and the inverse is rounded down. So an x halfway between
// two codes stays halfway; with a rounded inverse alone it could move to either side.
//
// In these cases the rest is 0, so that only x * inverse is computed:
// - the scale is a power of two, or follows TransformerEngine's order of operations;
// - a float32 scale has more than 16 significant bits: few elements lie halfway between two codes
//   at such a scale, and for all other elements the quotient's last bit decides nothing;
// - the block's magnitudes are above 2^120 or so, where the rest is too small for a normal float.
template <typename Stored>
struct BlockScale {
  Stored stored{};
  float inverse = 0.0f;
  float rest = 0.0f;
};

// Returns 1 - inverse * scale. It is exact for a rounded inverse, as the difference has few bits.
constexpr float inverse_residual(float inverse, float scale) {
  return static_cast<float>(1.0 - static_cast<double>(inverse) * static_cast<double>(scale));
}
// Returns the largest float that is at most 1 / scale.
constexpr float inverse_below(float scale) {
  const float inverse = 1.0f / scale;
  if (inverse_residual(inverse, scale) >= 0.0f) return inverse;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(inverse) - 1);
}

// Returns the scale of a block with a float32 scale. The smallest is 2^-126, so that its inverse is
// finite; blocks far below it become 0. If the division rounded down, the scale is rounded up,
// because the largest magnitude must not clip.
constexpr BlockScale<float> float_scale(const Minifloat& element, std::uint32_t amax_bits,
                                        bool stochastic) {
  if (amax_bits >= kInfinityBits) return {std::numeric_limits<float>::quiet_NaN(), 0.0f};
  if (amax_bits == 0) return {};
  const float amax = std::bit_cast<float>(amax_bits);
  float scale = std::max(amax / largest(element), std::numeric_limits<float>::min());
  const bool clips = static_cast<double>(scale) * static_cast<double>(largest(element)) <
                     static_cast<double>(amax);
  if (clips) scale = std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) + 1);
  if (stochastic || (std::bit_cast<std::uint32_t>(scale) & 0xFF) != 0) return {scale, 1.0f / scale};
  const float inverse = inverse_below(scale);
  return {scale, inverse, inverse_residual(inverse, scale) * inverse};
}

// Returns the E8M0 code of the smallest power of two at which a magnitude with the float bits
// `amax_bits` does not clip. `largest_bits`: float bits of the largest value that a code has.
constexpr int ceil_scale_code(std::uint32_t amax_bits, std::uint32_t largest_bits) {
  const int exponent = static_cast<int>(largest_bits >> 23) - 127;
  const bool above = (amax_bits & 0x7FFFFF) > (largest_bits & 0x7FFFFF);
  return std::clamp(static_cast<int>(amax_bits >> 23) - exponent + (above ? 1 : 0), 0, 254);
}

// Returns the scale of an MX block by the rule of OCP MX 1.0, section 6.3 (`floor`), or by one of
// two other rules in use.
constexpr BlockScale<std::uint8_t> mx_scale(const Minifloat& element, ScaleRule rule,
                                            std::uint32_t amax_bits) {
  if (amax_bits >= kInfinityBits) return {0xFF, 0.0f};
  if (amax_bits == 0) return {};
  const auto largest_bits = std::bit_cast<std::uint32_t>(largest(element));
  const std::uint32_t half_ulp = rule == ScaleRule::even ? 1u << (22 - element.mantissa_bits) : 0;
  const int exponent = static_cast<int>(largest_bits >> 23) - 127;
  const int floor_code = static_cast<int>((amax_bits + half_ulp) >> 23) - exponent;
  const int code = rule == ScaleRule::ceil ? ceil_scale_code(amax_bits, largest_bits)
                                           : std::clamp(floor_code, 0, 254);
  return {static_cast<std::uint8_t>(code), e8m0_value(254 - code)};
}

// The functions below copy constants before passing them by reference: device compilers cannot
// refer to constants of the host.

constexpr int e4m3_nearest(float value) {
  constexpr Minifloat kElement = kE4M3;
  return encode_nearest(kElement, value);
}
constexpr float e4m3_value(int code) {
  constexpr Minifloat kElement = kE4M3;
  return magnitude_value(kElement, code);
}
constexpr float at_most_finite(float value) {
  return kFloatMax < value ? kFloatMax : value;
}

// NVFP4 elements are E2M1, whose largest value is 6. A block's scale is an E4M3 value, at most 448,
// times the packet's scale.
inline constexpr float kFp4Largest = 6.0f;
inline constexpr float kFp4Sixth = 1.0f / 6.0f;
inline constexpr float kNvfp4Range =
    448.0f * kFp4Largest;  // largest magnitude under a packet scale of 1

// Least code of a packet's scale, 2^(10 - 127). The smallest block scale is 2^-9 (E4M3's smallest
// value) times the packet's scale, so 2^-126. The inverse of a smaller one would overflow.
inline constexpr int kNvfp4PacketCodeMin = 10;

// Returns the E8M0 code of the smallest power of two under which the packet's finite maximum does
// not clip, or 0 for a packet of zeros.
constexpr int nvfp4_packet_code(std::uint32_t amax_bits) {
  if (amax_bits == 0) return 0;
  const int code = ceil_scale_code(amax_bits, std::bit_cast<std::uint32_t>(kNvfp4Range));
  return code < kNvfp4PacketCodeMin ? kNvfp4PacketCodeMin : code;
}

// Returns the E4M3 code of a block's scale. `amax` is the block's largest magnitude in units of the
// packet scale, and 6 is E2M1's largest value. The code is nearest to amax/6. The product with a
// rounded sixth is exact where amax/6 lies halfway between two codes. With `round_up` the code is
// the smallest v with 6 v >= amax (exact in float), which stochastic rounding needs to be unbiased.
constexpr int e4m3_scale_code(float amax, bool round_up) {
  const float sixth = amax * kFp4Sixth;
  int code = e4m3_nearest(sixth);
  if (!round_up) return code;
  if (kFp4Largest * e4m3_value(code) < amax && code < kE4M3.magnitude_max) ++code;
  return code;
}

constexpr BlockScale<std::uint8_t> nvfp4_scale(std::uint32_t amax_bits, int packet_code,
                                               bool stochastic) {
  if (amax_bits >= kInfinityBits) return {0x7F, 0.0f};
  if (amax_bits == 0) return {};
  const float packet_inverse = e8m0_value(254 - packet_code);
  const int code = e4m3_scale_code(std::bit_cast<float>(amax_bits) * packet_inverse, stochastic);
  if (code == 0) return {};
  const auto stored = static_cast<std::uint8_t>(code);
  const float value = e4m3_value(code);
  if (stochastic) return {stored, (1.0f / value) * packet_inverse};
  const float inverse = inverse_below(value);
  return {stored, inverse * packet_inverse,
          inverse_residual(inverse, value) * (inverse * packet_inverse)};
}

// TransformerEngine's NVFP4, in its order of operations, which decides the bits. `amax` is the
// tensor's (or packet's) largest magnitude.
constexpr float te_encode_scale(float amax) {
  const float scale = at_most_finite(kNvfp4Range / amax);
  return amax == 0.0f || scale == 0.0f ? 1.0f : scale;
}

constexpr BlockScale<std::uint8_t> te_scale(std::uint32_t amax_bits, float encode_scale,
                                            bool round_up) {
  if (amax_bits >= kInfinityBits) return {0x7F, 0.0f};
  if (amax_bits == 0) return {};
  const float amax = std::bit_cast<float>(amax_bits);
  const int code = round_up ? e4m3_scale_code(at_most_finite(amax * encode_scale), true)
                            : e4m3_nearest(at_most_finite(amax * (encode_scale * kFp4Sixth)));
  if (code == 0) return {};
  const float inverse = 1.0f / (e4m3_value(code) * (1.0f / encode_scale));
  return {static_cast<std::uint8_t>(code), at_most_finite(inverse)};
}

}  // namespace leeway::codec
