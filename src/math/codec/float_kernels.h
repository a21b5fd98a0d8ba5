// Vector kernels of the element-by-element formats fp32, fp16 and bf16, compiled for every
// instruction set and chosen at run time. The callers (codec.cc, reduce.cc) check lengths. Bytes
// may lie at any address.
#pragma once

#include <cstddef>
#include <span>

#include "leeway/options.h"

namespace leeway::codec {

void encode_floats(Codec codec, std::span<const float> in, std::byte* out);
void decode_floats(Codec codec, const std::byte* in, std::span<float> out);
void accumulate_floats(Codec codec, const std::byte* in, float scale,
                       std::span<float> sum);  // sum += scale * in
void scale_floats(Codec codec, const std::byte* in, float scale,
                  std::span<float> out);  // out = scale * in

}  // namespace leeway::codec
