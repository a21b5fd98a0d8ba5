// The family of block-scaled formats: FP8, MX, NVFP4, LUQ and int8. A packet is [packet
// scale][block scales][codes]; a block's elements are its scale times small floats (minifloat.h).
// README.md, "Wire layouts", has the byte tables.
//
// Three steps, each a kernel compiled for every instruction set: magnitudes of blocks (encode),
// scales, codes. namespace scalar holds the definition, element by element, which every kernel must
// match byte for byte.
#pragma once

#include <cstddef>
#include <span>

#include "codec/codec.h"

namespace leeway::codec {

// The caller checks lengths and sets the floating-point mode (float_mode.h).
void encode_scaled(const Format& format, std::span<const float> in, const Place& place,
                   std::byte* out);
// Writes the bytes that the elements converted to float32 would give.
void encode_scaled(const Format& format, std::span<const Half> in, const Place& place,
                   std::byte* out);
void encode_scaled(const Format& format, std::span<const BFloat16> in, const Place& place,
                   std::byte* out);
void accumulate_scaled(const Format& format, const std::byte* in, float scale,
                       std::span<float> sum);
void assign_scaled(const Format& format, const std::byte* in, float scale,
                   std::span<float> out);  // out = (scale * block) * code

namespace scalar {
void encode_scaled(const Format& format, std::span<const float> in, const Place& place,
                   std::byte* out);
// Writes the bytes that the elements converted to float32 would give.
void encode_scaled(const Format& format, std::span<const Half> in, const Place& place,
                   std::byte* out);
void encode_scaled(const Format& format, std::span<const BFloat16> in, const Place& place,
                   std::byte* out);
void accumulate_scaled(const Format& format, const std::byte* in, float scale,
                       std::span<float> sum);
void assign_scaled(const Format& format, const std::byte* in, float scale, std::span<float> out);
}  // namespace scalar

}  // namespace leeway::codec
