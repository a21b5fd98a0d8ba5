// The scalar definition, and one kernel for blocks of 256 that every instruction set compiles.
//
// Butterflies run in ascending stride, and each result is one rounded sum or difference of the same two
// values wherever the values lie, so that all targets agree in every bit. Elements are scaled before the
// butterflies: a block whose transform is finite never overflows on the way.
#include "codec/rotation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "codec/random_bytes.h"

namespace leeway::codec {
namespace {

inline constexpr std::size_t kSignGroup = 128;  // elements whose signs are the bits of one draw
inline constexpr std::uint32_t kSignBit = 0x80000000;

// Bit j of word j / 32 is the sign of element j of the group, wherever the packet starts: rotated
// contributions of all sources are added, therefore the counter's source is 0.
PhiloxCounter signs_of_group(const Place& place, std::uint64_t group) {
  Place shared = place;
  shared.source = 0;
  return philox<10>(random_counter(shared, kRotationStream, group), philox_key(place.seed));
}

// Signs of 32 elements from `element` of the tensor, a multiple of 32.
std::uint32_t signs_at(const Place& place, std::uint64_t element) {
  return signs_of_group(place, element / kSignGroup)[element % kSignGroup / 32];
}

// 1/sqrt(n) for a power of two n <= 256: exact for even powers, else the nearest float.
float norm(std::size_t n) {
  constexpr float kHalfRoot = 0.70710678f;  // 1/sqrt(2)
  const int power = std::countr_zero(n);
  const float exact = 1.0f / static_cast<float>(1 << power / 2);
  return power % 2 == 0 ? exact : exact * kHalfRoot;
}

float with_sign(float value, std::uint32_t negative) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ negative << 31);
}

// Signs start at position `element` of the tensor; a block of fewer than 32 elements may start anywhere.
void flip(const Place& place, std::uint64_t element, std::span<float> values) {
  std::uint32_t signs = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t at = element + i;
    if (i == 0 || at % 32 == 0) signs = signs_at(place, at / 32 * 32);
    values[i] = with_sign(values[i], signs >> at % 32 & 1);
  }
}

void transform(std::span<float> block) {
  const float factor = norm(block.size());
  for (float& value : block) value *= factor;
  for (std::size_t stride = 1; stride < block.size(); stride *= 2) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      if ((i & stride) != 0) continue;
      const float low = block[i];
      const float high = block[i + stride];
      block[i] = low + high;
      block[i + stride] = low - high;
    }
  }
}

void transform_blocks(std::span<float> values) {
  while (!values.empty()) {
    const std::size_t length = std::min(kRotationElements, std::bit_floor(values.size()));
    transform(values.first(length));
    values = values.subspan(length);
  }
}

}  // namespace

void rotate(const Place& place, std::span<float> values) {
  flip(place, place.first_element, values);
  transform_blocks(values);
}

void unrotate(const Place& place, std::span<float> values) {
  transform_blocks(values);
  flip(place, place.first_element, values);
}

}  // namespace leeway::codec
