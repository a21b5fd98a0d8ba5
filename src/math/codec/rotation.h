// Randomised Hadamard transform: signs keyed by (seed, step, position), then an orthonormal
// Walsh-Hadamard transform of blocks of 256 elements; a shorter rest is cut into blocks of
// descending powers of two. It spreads the error of one large element or one lost block over all
// elements of a block.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "codec/codec.h"
#include "codec/random_bytes.h"

namespace leeway::codec {

inline constexpr std::size_t kSignGroup = 128;  // elements whose signs are the bits of one draw

// Bit j of the draw's little-endian output is set where element j of the group is negated.
// Contributions of all sources share one rotation: the counter's source is 0.
constexpr PhiloxCounter signs_of_group(const Place& place, std::uint64_t group) {
  Place shared = place;
  shared.source = 0;
  return philox(random_counter(shared, kRotationStream, group), philox_key(place.seed));
}

// 1/sqrt(length) of a power of two: exact for even powers, else the float next to it.
constexpr float rotation_factor(std::size_t length) {
  constexpr float kRootOfHalf = 0.70710678f;
  const int power = std::countr_zero(length);
  const auto whole = std::bit_cast<float>(static_cast<std::uint32_t>(127 - power / 2) << 23);
  return power % 2 == 0 ? whole : whole * kRootOfHalf;
}

// Rotates in place. place.first_element is a multiple of 32. place.source does not matter, so that
// contributions of all ranks share one rotation. unrotate(rotate(x)) equals x but for rounding. If
// an element is not finite, its whole block becomes not finite.
void rotate(const Place& place, std::span<float> values);
void unrotate(const Place& place, std::span<float> values);

// The definition, which the kernels must match bit for bit, NaN payloads excepted.
namespace scalar {
void rotate(const Place& place, std::span<float> values);
void unrotate(const Place& place, std::span<float> values);
}  // namespace scalar

}  // namespace leeway::codec
