// The compiled kernels that this build holds.
#pragma once

#include "leeway/types.h"

namespace leeway::device_codec {

// Returns a fat binary: machine code for some generations of devices, and PTX for later ones.
// Returns an empty span if the build found no nvcc.
ByteSpan built_image();

}  // namespace leeway::device_codec
