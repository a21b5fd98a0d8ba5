// Reductions of tensors of every element type, as the exact collectives define them.
//
// float32 and float64 compute in their own type, float16 and bfloat16 in float32 with one rounding
// after each operation, integers wrap modulo 2^n. min and max propagate NaN. Operands may lie at
// any address.
#pragma once

#include <span>

#include "leeway/options.h"
#include "leeway/types.h"

namespace leeway::codec {

// accumulator = accumulator op operand, element by element; avg adds (divide() is its second half).
// Equal sizes in bytes.
void combine(ReduceOp op, DataType dtype, MutableByteSpan accumulator, ByteSpan operand);

// values = values / n, n >= 1: the second half of an exact average. Integers truncate towards zero.
void divide(DataType dtype, MutableByteSpan values, int n);

// The lossy sum of tensors that travel as they are: out = ((s0*x0 + s1*x1) + ...) for floating
// element types. float16 and bfloat16 accumulate in float32 and round once at the end; float64 in
// float64. At most limits::kPeersMax
// inputs; without any: zero. out may be exactly the same memory as inputs.
void weighted_sum(DataType dtype, std::span<const std::byte* const> inputs,
                  std::span<const double> scales, MutableByteSpan out);

}  // namespace leeway::codec
