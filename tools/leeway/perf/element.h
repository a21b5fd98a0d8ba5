// Reading and writing one element of any type as a double. For test data, which are small integers:
// every type of the library holds them exactly, so a store is never rounded.
#pragma once

#include <cstddef>

#include "leeway/types.h"

namespace leeway::tools::perf {

double load_element(ConstTensorView tensor, std::size_t index);

// `value` must be an integer that the type represents.
void store_element(TensorView tensor, std::size_t index, double value);

// Largest integer m such that all of -m .. m (0 .. m for u8) are exact in the type.
double integer_max(DataType type);

}  // namespace leeway::tools::perf
