// The reduction's hot loop: several float32 contributions to one result in a single pass over
// memory.
#pragma once

#include <span>

#include "leeway/types.h"

namespace leeway::codec {

// out = ((s0*x0 + s1*x1) + s2*x2) + ..., every step rounded, so that the bits equal those of
// accumulate_first(x0, s0), accumulate(x1, s1), ... Without inputs, out is zero.
//
// Inputs and result are float32 at any byte address; inputs[j] has as many elements as out. out may
// be exactly the same memory as inputs, but may not partly overlap them. scales.size() ==
// inputs.size(). Returns whether all of out is finite if `check` is set, else true.
bool weighted_sum_floats(std::span<const std::byte* const> inputs, std::span<const float> scales,
                         MutableByteSpan out, bool check = false);

}  // namespace leeway::codec
