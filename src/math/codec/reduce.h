// Reductions of tensors of every element type, as the exact collectives define them.
//
// float32 and float64 compute in their own type; float16, bfloat16 and FP8 in float32 with one
// rounding at the end; integers wrap modulo 2^n; booleans are true where their byte is not 0. min
// and max leave NaNs out, as fminf() and NCCL's kernels do: a result is NaN only where all inputs
// are. Inputs may lie at any address.
#pragma once

#include <span>

#include "leeway/options.h"
#include "leeway/types.h"

namespace leeway::codec {

// Returns whether the reduction is defined for elements of this type. ReduceOp's documentation
// names the types for which it is not.
bool is_defined(ReduceOp op, DataType dtype);

// out = ((x0 op x1) op x2) ..., element by element; avg divides the sum by the number of inputs;
// premul_sum only adds, as multiply() has been applied. At least one input, each of out's size; out
// may be exactly the memory of an input. Requires is_defined(op, dtype).
void reduce(ReduceOp op, DataType dtype, std::span<const std::byte* const> inputs,
            MutableByteSpan out);

// Returns whether a tensor of this type can be multiplied by the factor
// (CollectiveOptions::factor).
bool is_factor(const Scalar& factor, DataType dtype);

// out = factor * in, rounded to the type once; integers wrap. `in` and `out` have equal sizes, and
// may be exactly the same memory. Requires is_factor(factor, dtype).
void multiply(DataType dtype, const Scalar& factor, ByteSpan in, MutableByteSpan out);

// The lossy sum of tensors that travel as they are: out = ((s0*x0 + s1*x1) + ...) for floating
// element types. float16, bfloat16 and FP8 accumulate in float32 and round once at the end; float64
// accumulates in float64. At most limits::kPeersMax inputs; without any, out is zero. out may be
// exactly the same memory as inputs.
void weighted_sum(DataType dtype, std::span<const std::byte* const> inputs,
                  std::span<const double> scales, MutableByteSpan out);
// The same as weighted_sum(). Returns whether all of out is finite.
bool weighted_sum_checked(DataType dtype, std::span<const std::byte* const> inputs,
                          std::span<const double> scales, MutableByteSpan out);

}  // namespace leeway::codec
