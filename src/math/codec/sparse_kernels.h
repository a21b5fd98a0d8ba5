// Element-by-element steps of the sparse encoder, compiled for every instruction set: random bits,
// and rounding to E4M3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/codec.h"

namespace leeway::codec {

// Writes the 16 bytes of draw `draw` of the 16-element blocks from `block` on (random_bytes.h).
// out.size() is a multiple of 128.
void draw_blocks(const Place& place, std::uint32_t stream, std::uint32_t draw, std::uint64_t block,
                 std::span<std::uint8_t> out);

// out[i] = the E4M3 code of sent[i] / scale, rounded stochastically by random[i].
void round_to_e4m3(std::span<const float> sent, float scale, const std::uint8_t* random,
                   std::byte* out);

}  // namespace leeway::codec
