// Encodes Adam's moments in one byte each. The loops are not vectorised: a state is encoded at most
// once a step, and moving it takes longer.
#include "leeway/adam_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/philox.h"
#include "codec/float_mode.h"
#include "codec/minifloat.h"

namespace leeway {
inline namespace v0 {
namespace {

using codec::Minifloat;

constexpr float kFloatMax = std::numeric_limits<float>::max();
constexpr std::uint32_t kMagnitudeMask = 0x7FFFFFFF;
constexpr std::uint32_t kExponentMask = 0x7F800000;

// Philox stream of the draws of flush() (base/philox.h: top 4 bits of word b).
constexpr std::uint32_t kFlushStream = 0xA0000000;

// How one of Adam's two moments is encoded.
struct Moment {
  Minifloat format;
  float max;             // value to which the largest element is scaled
  std::uint32_t number;  // 0 first, 1 second: their draws differ
};
constexpr std::uint32_t kFirst = 0;
constexpr std::uint32_t kSecond = 1;

std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & kMagnitudeMask;
}

float largest_finite(std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values) {
    const std::uint32_t bits = magnitude_bits(value);
    largest = std::max(largest, bits < kExponentMask ? bits : 0);
  }
  return std::bit_cast<float>(largest);
}

// Returns the factor that scales `amax` to `max`. If amax is below 2^-117 or so, max/amax exceeds
// float's range, and the largest float is the scale.
float scale_of(float amax, float max, bool power_of_two) {
  if (amax == 0.0f) return 1.0f;
  const float scale = std::min(max / amax, kFloatMax);
  if (!power_of_two) return scale;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & kExponentMask);
}

// Returns the smallest nonzero code with probability |value| over that code's value, else 0. The 32
// random bits belong to this element alone.
int flush(const Moment& moment, float value, std::uint64_t element,
          const AdamState8Options& options) {
  const PhiloxCounter counter{
      static_cast<std::uint32_t>(element),
      kFlushStream | moment.number << 24 | (static_cast<std::uint32_t>(element >> 32) & 0xFFFFFF),
      options.step, 0};
  const std::uint32_t word = philox(counter, philox_key(options.seed))[0];
  const double probability =
      std::abs(static_cast<double>(value)) / magnitude_value(moment.format, 1);
  const int kept = word < probability * 0x1p32 ? 1 : 0;
  return codec::internal::with_sign(moment.format, value, kept);
}

Result<float> encode(const Moment& moment, std::span<const float> in, std::span<std::uint8_t> out,
                     const AdamState8Options& options) {
  if (in.size() != out.size()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "Adam state: %zu elements need %zu bytes, not %zu", in.size(), in.size(),
                         out.size());
  }
  const codec::StandardFloatMode mode;
  const float scale = scale_of(largest_finite(in), moment.max, options.power_of_two_scale);
  const float smallest = magnitude_value(moment.format, 1);
  for (std::size_t i = 0; i < in.size(); ++i) {
    int code = moment.format.nan_code;
    if (magnitude_bits(in[i]) < kExponentMask) {
      const float scaled = in[i] * scale;
      code = options.stochastic_flush && std::abs(scaled) < smallest
                 ? flush(moment, scaled, options.first_element + i, options)
                 : encode_nearest(moment.format, scaled);
    }
    out[i] = static_cast<std::uint8_t>(code);
  }
  return scale;
}

Status decode(const Minifloat& format, std::span<const std::uint8_t> in, float scale,
              std::span<float> out) {
  if (in.size() != out.size()) {
    return Status::error(StatusCode::kInvalidArgument, "Adam state: %zu bytes are not %zu elements",
                         in.size(), out.size());
  }
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(scale);
  if (bits == 0 || bits >= kExponentMask) {  // zero, infinite, NaN or with a sign
    return Status::error(StatusCode::kInvalidArgument,
                         "Adam state: scale %g is not finite and above 0",
                         static_cast<double>(scale));
  }
  const codec::StandardFloatMode mode;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const float code = codec::decode(format, in[i]);
    const float value = code / scale;
    // Decoding may overflow if the encoder rounded up an element near the largest float.
    out[i] = std::isfinite(code) ? std::clamp(value, -kFloatMax, kFloatMax) : value;
  }
  return {};
}

}  // namespace

Result<float> encode_adam_first(std::span<const float> moment, std::span<std::uint8_t> codes,
                                const AdamState8Options& options) {
  if (options.first_max != 448.0f && options.first_max != 240.0f) {
    return Status::error(StatusCode::kInvalidArgument,
                         "Adam state: first_max %g is neither 448 nor 240",
                         static_cast<double>(options.first_max));
  }
  return encode({codec::kE4M3, options.first_max, kFirst}, moment, codes, options);
}

Result<float> encode_adam_second(std::span<const float> moment, std::span<std::uint8_t> codes,
                                 const AdamState8Options& options) {
  return encode({codec::kE5M2, largest(codec::kE5M2), kSecond}, moment, codes, options);
}

Status decode_adam_first(std::span<const std::uint8_t> codes, float scale,
                         std::span<float> moment) {
  return decode(codec::kE4M3, codes, scale, moment);
}

Status decode_adam_second(std::span<const std::uint8_t> codes, float scale,
                          std::span<float> moment) {
  return decode(codec::kE5M2, codes, scale, moment);
}

}  // namespace v0
}  // namespace leeway
