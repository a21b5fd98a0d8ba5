#include "error_bound.h"

#include <algorithm>
#include <cmath>

#include "codec/minifloat.h"
#include "codec/scaled.h"
#include "codec/scaled_layout.h"

namespace leeway::fuzz {
namespace {

using codec::ScaleKind;

// Bound on the relative error of the two or three float operations between a value and its code.
constexpr double kArithmetic = 0x1p-19;
// Least scale. A smaller scale is subnormal, or its inverse overflows.
constexpr double kSmallestScale = 0x1p-104;

double float_bound(Codec codec, double value, bool stochastic) {
  const bool half = codec == Codec::fp16;
  const double quantum = std::max(value * (half ? 0x1p-10 : 0x1p-7), half ? 0x1p-24 : 0x1p-133);
  return stochastic ? quantum : quantum / 2;
}

// Bounds for a group of elements that share a scale: the largest scale that the group may have, and
// how much of its largest element may be clipped.
struct ScaleBound {
  double largest = 0.0;
  double clipped = 0.0;  // how much is clipped if the scale was rounded down
};

// Returns the largest power of two that is not above the element format's largest value.
double top_binade(const codec::Minifloat& element) {
  return std::exp2(std::ilogb(codec::largest(element)));
}

ScaleBound scale_bound(const codec::Format& format, double group_max, double packet_max) {
  const codec::ScaledLayout layout = codec::scaled_layout(format.options.codec);
  const double top = codec::largest(layout.element);
  const bool up = format.stochastic();
  switch (layout.block_scale) {
    case ScaleKind::power_of_two: {
      const double mantissa = top / top_binade(layout.element);  // 1 .. 2
      const bool ceil = format.options.scale_rule == ScaleRule::ceil;
      return {2.0 * group_max / top, ceil ? 0.0 : group_max * (1.0 - mantissa / 2.0)};
    }
    case ScaleKind::e4m3: {  // 3 mantissa bits; subnormals below 2^-6 in steps of 2^-9 packet
                             // scales
      const double packet_scale = 2.0 * packet_max / 2688.0;
      const double step = 0x1p-9 * packet_scale;
      const double relative = up ? 0x1p-3 : 0x1p-4;
      return {group_max / top * (1.0 + relative) + step,
              up ? 0.0 : group_max * relative + top * step};
    }
    default:
      return {group_max / top * 1.001, 0.0};
  }
}

}  // namespace

std::size_t scale_group(const codec::Format& format, std::size_t elements) {
  const std::size_t block = codec::scaled_layout(format.options.codec).block;
  return block == 0 ? std::max<std::size_t>(elements, 1) : block;
}

bool far_from_overflow(const codec::Format& format, std::span<const float> packet) {
  constexpr float kFar = 0x1p118f;  // 256 elements of a sparse group add up to less than 2^127
  if (format.options.codec == Codec::fp16 || format.element == DataType::f16) {
    return std::all_of(packet.begin(), packet.end(),
                       [](float x) { return std::abs(x) < 65520.0f || !std::isfinite(x); });
  }
  return format.options.bound < kFar && std::all_of(packet.begin(), packet.end(), [](float x) {
           return std::abs(x) < kFar || !std::isfinite(x);
         });
}

double error_bound(const codec::Format& format, double value, double group_max, double packet_max) {
  const double magnitude = std::abs(value);
  const Codec codec = format.options.codec;
  if (!codec::is_scaled(codec)) {
    const bool half = codec == Codec::fp16 || format.element == DataType::f16;
    return float_bound(half ? Codec::fp16 : Codec::bf16, magnitude, format.stochastic());
  }
  const codec::Minifloat element = codec::scaled_layout(codec).element;
  const ScaleBound scale = scale_bound(format, group_max, packet_max);
  const double smallest_step = std::exp2(element.exponent_min - element.mantissa_bits);
  const double quantum = std::max(magnitude * std::exp2(-element.mantissa_bits),
                                  std::max(scale.largest, kSmallestScale) * smallest_step);
  const double rounding = format.stochastic() ? quantum : quantum / 2;
  return rounding + scale.clipped + magnitude * kArithmetic;
}

}  // namespace leeway::fuzz
