// The compiled kernels that this build holds.
#pragma once

#include "leeway/types.h"

namespace leeway::device_codec {

// A fat binary: machine code for some generations of devices, and PTX for later ones. Empty: it was
// built where no nvcc was found.
ByteSpan built_image();

}  // namespace leeway::device_codec
