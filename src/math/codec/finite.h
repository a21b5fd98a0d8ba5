// Checks values for infinities and NaN.
#pragma once

#include "leeway/types.h"

namespace leeway::codec {

// Returns whether all values are finite. They are of a floating type, at any byte address.
bool all_finite(DataType dtype, ByteSpan values);

}  // namespace leeway::codec
