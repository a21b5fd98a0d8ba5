// Unbiased N:M sparsity: `kept` of every `group` elements travel, drawn with probabilities p_i =
// min(1, lambda |x_i|) that sum to `kept` (arXiv 2203.10991), as x_i / p_i in E4M3. With groups of
// 256 this is stochastic pruning (arXiv 2006.08173) to an exact sparsity.
#pragma once

#include <cstddef>
#include <span>

#include "codec/codec.h"

namespace leeway::codec {

// The caller checks lengths and sets the floating-point mode.
void encode_sparse(const Format& format, std::span<const float> in, const Place& place,
                   std::byte* out);
void accumulate_sparse(const Format& format, const std::byte* in, float scale,
                       std::span<float> sum);
void assign_sparse(const Format& format, const std::byte* in, float scale, std::span<float> out);

}  // namespace leeway::codec
