// The random bits of stochastic rounding: Philox4x32-10. Its key is the seed. Its counter has the
// place of a block of 16 elements in the tensor, the step and the source. Byte j of the
// little-endian output belongs to element j of the block.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/philox.h"
#include "codec/codec.h"

namespace leeway::codec {

inline constexpr std::size_t kRandomBlockElements = 16;

// Purpose of a draw, in the top 4 bits of counter word 1, so that no two purposes share a draw. The
// next 4 bits are `draw` (0 .. 15). Draws above 0 give the second half of 16-bit random words, and
// LUQ's further draws.
inline constexpr std::uint32_t kRoundingStream = 0x00000000;
inline constexpr std::uint32_t kSamplingStream = 0x80000000;  // which elements a sparse group keeps
inline constexpr std::uint32_t kRotationStream =
    0x90000000;  // signs; without step and source see rotation.cc

// Upper byte of counter word 1.
constexpr std::uint32_t stream_tag(std::uint32_t stream, std::uint32_t draw) {
  return stream | draw << 24;
}

// Counter of one block; `block` is its index in the tensor.
constexpr PhiloxCounter random_counter(const Place& place, std::uint32_t stream,
                                       std::uint64_t block, std::uint32_t draw = 0) {
  return {static_cast<std::uint32_t>(block),
          stream_tag(stream, draw) | (static_cast<std::uint32_t>(block >> 32) & 0xFFFFFF),
          place.step, place.source};
}

// 16 bytes for the block's elements.
inline std::array<std::uint8_t, 16> random_bytes(const Place& place, std::uint32_t stream,
                                                 std::uint64_t block, std::uint32_t draw = 0) {
  const PhiloxCounter words =
      philox(random_counter(place, stream, block, draw), philox_key(place.seed));
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t j = 0; j < bytes.size(); ++j)
    bytes[j] = static_cast<std::uint8_t>(words[j / 4] >> (8 * (j % 4)));
  return bytes;
}

}  // namespace leeway::codec
