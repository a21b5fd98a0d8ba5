// Reads and writes elements of any type as doubles. Test data are small integers, which all types
// hold exactly, so a store is never rounded.
#pragma once

#include <cstddef>

#include "leeway/types.h"

namespace leeway::tools::perf {

double load_element(ConstTensorView tensor, std::size_t index);

// `value` must be an integer that the type represents.
void store_element(TensorView tensor, std::size_t index, double value);

// Returns the largest m such that the type holds all integers -m .. m (0 .. m for u8) exactly.
double integer_max(DataType type);

}  // namespace leeway::tools::perf
