// How far encoding may move a finite value: per format, from its element's quantum and its scale
// rule, without repeating the encoder's arithmetic.
#pragma once

#include <cstddef>
#include <span>

#include "codec/codec.h"

namespace leeway::fuzz {

// Elements [begin, end) that share a scale: the elements of one block, or all where the scale is
// the packet's.
std::size_t scale_group(const codec::Format& format, std::size_t elements);

// Returns true if this packet's values stay so far below the largest float that neither a scale
// rounded up nor x / p can overflow.
bool far_from_overflow(const codec::Format& format, std::span<const float> packet);

// Largest |decoded - value| of an element of a group whose largest magnitude is `group_max`, in a
// packet whose largest is `packet_max`. Scaled formats without clip or bound, fp16 and bf16;
// magnitudes that are far from overflow.
double error_bound(const codec::Format& format, double value, double group_max, double packet_max);

}  // namespace leeway::fuzz
