// Whether there is an infinity or a NaN among values.
#pragma once

#include "leeway/types.h"

namespace leeway::codec {

// Of a floating type, at any byte address.
bool all_finite(DataType dtype, ByteSpan values);

}  // namespace leeway::codec
