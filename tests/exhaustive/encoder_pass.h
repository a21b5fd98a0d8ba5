// Every float up to an element format's largest value through the MX encoder of this processor, in
// blocks whose scale is 1.
#pragma once

#include <cstdint>

#include "exhaustive/all_floats.h"
#include "leeway/codec.h"

namespace leeway::codec {

// Number of elements of either sign, or of scales, that are not as `steps` says. `codec` is one of
// the MX formats.
std::uint64_t count_encoder_differences(Codec codec, const Steps& steps);

}  // namespace leeway::codec
