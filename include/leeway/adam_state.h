// The two moments of Adam in one byte an element, as in arXiv 2409.12517: what checkpoints and
// sharded optimizers keep and send.
//
// The first moment becomes E4M3 (precision), the second E5M2 (range; never negative, but signs are
// kept), rounded to nearest, with one scale for the whole span, usually a parameter shard:
// code = round(x * scale), scale = largest code / largest |x|. Codes and scales do not depend on
// the processor, nor on the floating-point mode the caller has set.
//
// NaN and infinities become NaN codes and the scale is taken from the finite elements: a broken
// state stays visible and does not spoil its neighbours. A span of zeros has scale 1.
#pragma once

#include <cstdint>
#include <span>

#include "leeway/export.h"
#include "leeway/status.h"

namespace leeway {
inline namespace v0 {

// How moments are encoded. Decoding needs none of this.
struct AdamState8Options {
  // What the largest first moment becomes: 448, the largest E4M3 of OCP FP8, or 240, that of
  // devices which keep the top exponent for NaN and infinities. Codes are OCP's either way.
  float first_max = 448.0f;
  // Scales rounded down to powers of two, which changes no significand.
  bool power_of_two_scale = false;
  // Values below the smallest subnormal, m = 2^-9 (first) or 2^-16 (second) after scaling, become
  // +-m with probability |x|/m instead of rounding to m or zero: small moments decay to zero on
  // average and not all at once. The rest is rounded to nearest all the same.
  bool stochastic_flush = false;
  // What names a draw of the flush: use the optimizer's step, or each element draws the same every
  // time, and the index that the span's first element has in the whole state.
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint64_t first_element = 0;
};

// Codes of `moment`, as many bytes as it has elements, and the scale to decode them with: finite
// and > 0. kInvalidArgument, and nothing written, if the sizes differ or first_max is neither 448
// nor 240.
LEEWAY_EXPORT Result<float> encode_adam_first(std::span<const float> moment,
                                              std::span<std::uint8_t> codes,
                                              const AdamState8Options& options = {});
LEEWAY_EXPORT Result<float> encode_adam_second(std::span<const float> moment,
                                               std::span<std::uint8_t> codes,
                                               const AdamState8Options& options = {});

// moment = code / scale; finite codes never become infinite. Any bytes decode. kInvalidArgument,
// and nothing written, if the sizes differ or the scale is not finite and > 0.
LEEWAY_EXPORT Status decode_adam_first(std::span<const std::uint8_t> codes, float scale,
                                       std::span<float> moment);
LEEWAY_EXPORT Status decode_adam_second(std::span<const std::uint8_t> codes, float scale,
                                        std::span<float> moment);

}  // namespace v0
}  // namespace leeway
