// sum_i scale_i x_i over contributions in rank order, for every floating-point type and codec.
#pragma once

#include <span>

#include "base/growing_buffer.h"
#include "codec/codec.h"
#include "leeway/types.h"

namespace leeway::collective {

// One contribution: the values of a packet, native (as they lie in tensors) or encoded. Need not be
// aligned.
struct Term {
  const std::byte* data = nullptr;
  float scale = 1.0f;
  bool encoded = false;
};

// Evaluates ((s0 x0 + s1 x1) + s2 x2) + ... for scales s and values x. Each step is rounded to
// float32 (float64 for f64 tensors). Writes the tensor's type; narrower types are rounded once.
// Without terms it writes zeros. `result` may be the memory of any native term. The result's bits
// depend only on the terms.
//
// In rotated formats, encoded terms are summed in the rotated domain, in rank order, and rotated
// back before native terms are added. `place`: keys of the first element's random bits.
//
// If `check`, returns whether the sum is finite: a term may hold an infinity or a NaN, or finite
// terms may overflow. Else returns true.
bool scaled_sum(const codec::Format& format, const codec::Place& place, DataType dtype,
                std::span<const Term> terms, std::size_t elements, MutableByteSpan result,
                GrowingBuffer& scratch, bool check);

bool is_finite(const codec::Format& format, DataType dtype, const Term& term, std::size_t elements,
               GrowingBuffer& scratch);

}  // namespace leeway::collective
