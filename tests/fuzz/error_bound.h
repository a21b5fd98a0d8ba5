// Bounds on how far encoding may move a finite value. They follow from each format's quantum and
// scale rule, without the encoder's arithmetic.
#pragma once

#include <cstddef>
#include <span>

#include "codec/codec.h"

namespace leeway::fuzz {

// Returns the number of elements that share a scale: those of a block, or the whole packet.
std::size_t scale_group(const codec::Format& format, std::size_t elements);

// Returns true if the packet's values are so far below the largest float that nothing can overflow:
// no scale, and no element divided by its probability.
bool far_from_overflow(const codec::Format& format, std::span<const float> packet);

// Returns a bound on |decoded - value|. `group_max` and `packet_max` are the largest magnitudes
// among the elements that share the scale, and in the packet. Magnitudes must be far from overflow,
// and the format must be fp16, bf16, or scaled without clip or bound.
double error_bound(const codec::Format& format, double value, double group_max, double packet_max);

}  // namespace leeway::fuzz
