// Randomised Hadamard transform: signs keyed by (seed, step, position), then an orthonormal
// Walsh-Hadamard transform of blocks of 256 elements; a shorter rest is cut into blocks of
// descending powers of two. Spreads what one element or one lost block would concentrate.
#pragma once

#include <span>

#include "codec/codec.h"

namespace leeway::codec {

// In place; place.first_element is a multiple of 32. place.source plays no part, so that
// contributions of all ranks share one rotation. unrotate(rotate(x)) equals x but for rounding;
// where an element is not finite, its whole block becomes so.
void rotate(const Place& place, std::span<float> values);
void unrotate(const Place& place, std::span<float> values);

// The definition, which the kernels must match bit for bit, NaN payloads excepted.
namespace scalar {
void rotate(const Place& place, std::span<float> values);
void unrotate(const Place& place, std::span<float> values);
}  // namespace scalar

}  // namespace leeway::codec
