// Randomised Hadamard transform: signs keyed by (seed, step, position), then an orthonormal Walsh-Hadamard transform of blocks of 256
// elements; a shorter rest is cut into blocks of descending powers of two. Spreads what one element or one lost block would concentrate.
#pragma once

#include <span>

#include "codec/codec.h"

namespace leeway::codec {

// In place. place.source plays no part, so that contributions of all ranks share one rotation. unrotate(rotate(x)) equals x but for rounding.
void rotate(const Place& place, std::span<float> values);
void unrotate(const Place& place, std::span<float> values);

}  // namespace leeway::codec
