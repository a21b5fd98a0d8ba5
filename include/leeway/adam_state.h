// Encodes the two moments of Adam, each element in one byte, as in arXiv 2409.12517, for
// checkpoints and sharded optimizers.
//
// The first moment becomes E4M3, for precision. The second moment becomes E5M2, for range. It is
// never negative in a sound state, but an element's sign is kept. Elements x are rounded to
// nearest, with one scale for the whole span, usually a parameter shard: code = round(x * scale),
// where scale = largest code / largest |x|. Codes and scales do not depend on the processor, nor on
// the floating-point mode the caller has set.
//
// NaN and infinities become NaN codes. The scale is taken from the finite elements only. So a
// broken element stays visible, and its neighbours keep their precision. The scale of a span of
// zeros is 1.
#pragma once

#include <cstdint>
#include <span>

#include "leeway/export.h"
#include "leeway/status.h"

namespace leeway {
inline namespace v0 {

// How moments are encoded. Decoding needs none of these options.
struct AdamState8Options {
  // Code value that the largest first moment gets: 448 or 240. 448 is the largest E4M3 value of OCP
  // FP8. 240 is the largest on devices that keep the top exponent for NaN and infinities. Codes are
  // OCP's in both cases.
  float first_max = 448.0f;
  // Round scales down to powers of two, so that scaling changes no significand.
  bool power_of_two_scale = false;
  // If true, an element x with |x| below the smallest subnormal m becomes m, with the sign of x,
  // with probability |x|/m, and else zero. After scaling, m is 2^-9 for the first moment and 2^-16
  // for the second. Small moments then decay to zero on average and not all at once. All other
  // elements are rounded to nearest.
  bool stochastic_flush = false;
  // Keys of the random draws of stochastic_flush. `step` is the optimizer's step; if it stays the
  // same, so do all draws. `first_element` is the index of the span's first element in the whole
  // state.
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint64_t first_element = 0;
};

// Writes the codes of `moment`, one byte for each element. Returns the scale that decodes them,
// which is finite and > 0. Returns kInvalidArgument and writes nothing if the sizes differ or
// first_max is neither 448 nor 240.
LEEWAY_EXPORT Result<float> encode_adam_first(std::span<const float> moment,
                                              std::span<std::uint8_t> codes,
                                              const AdamState8Options& options = {});
LEEWAY_EXPORT Result<float> encode_adam_second(std::span<const float> moment,
                                               std::span<std::uint8_t> codes,
                                               const AdamState8Options& options = {});

// Computes moment = code / scale; finite codes never become infinite. Any bytes decode. Returns
// kInvalidArgument and writes nothing if the sizes differ or the scale is not finite and > 0.
LEEWAY_EXPORT Status decode_adam_first(std::span<const std::uint8_t> codes, float scale,
                                       std::span<float> moment);
LEEWAY_EXPORT Status decode_adam_second(std::span<const std::uint8_t> codes, float scale,
                                        std::span<float> moment);

}  // namespace v0
}  // namespace leeway
