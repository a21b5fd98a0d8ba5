// fp16 and bf16 by stochastic rounding: 16 random bits an element. Infinities and NaN as under nearest rounding; what nearest rounding keeps
// finite stays finite.
#pragma once

#include <cstddef>
#include <span>

#include "codec/codec.h"

namespace leeway::codec {

void encode_floats_stochastic(Codec codec, std::span<const float> in, const Place& place, std::byte* out);

}  // namespace leeway::codec
