// The reduction's hot loop: several contributions to one result in a single pass over memory.
#pragma once

#include <span>

namespace leeway::codec {

// out = ((s0*x0 + s1*x1) + s2*x2) + ..., every step rounded, so that the bits equal those of
// accumulate_first(x0, s0), accumulate(x1, s1), ... Without inputs: zero. inputs[j] holds
// out.size() floats at any address; out may be exactly the same memory as inputs, but may not
// partly overlap them. scales.size() == inputs.size().
void weighted_sum(std::span<const float* const> inputs, std::span<const float> scales,
                  std::span<float> out);

}  // namespace leeway::codec
