// Encodes every float up to an element format's largest value by this processor's MX encoder, in
// blocks with scale 1.
#pragma once

#include <cstdint>

#include "exhaustive/all_floats.h"
#include "leeway/codec.h"

namespace leeway::codec {

// Returns how many elements of either sign, or scales, differ from `steps`. `codec` must be an MX
// format.
std::uint64_t count_encoder_differences(Codec codec, const Steps& steps);

}  // namespace leeway::codec
