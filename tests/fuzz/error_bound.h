// How far encoding may move a finite value. Derived from each format's quantum and scale rule,
// without the encoder's arithmetic.
#pragma once

#include <cstddef>
#include <span>

#include "codec/codec.h"

namespace leeway::fuzz {

// Returns the number of elements that share a scale: those of a block, or the whole packet.
std::size_t scale_group(const codec::Format& format, std::size_t elements);

// Returns true if the packet's values are so far below the largest float that no scale and no x / p
// can overflow.
bool far_from_overflow(const codec::Format& format, std::span<const float> packet);

// Returns the largest |decoded - value|. `group_max` and `packet_max`: largest magnitudes among the
// elements that share the scale, and in the packet. For scaled formats without clip or bound, fp16
// and bf16, with magnitudes far from overflow.
double error_bound(const codec::Format& format, double value, double group_max, double packet_max);

}  // namespace leeway::fuzz
