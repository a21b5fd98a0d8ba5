// A packet's measured maximum, and the limit that replaces it where one scale spans the packet: the
// caller's bound, or ACIQ's clip.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "codec/block_scale.h"
#include "codec/codec.h"
#include "codec/element.h"

namespace leeway::codec {

// Returns the largest magnitude, as float bits. A NaN's bits exceed those of every number.
inline std::uint32_t largest_magnitude(std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFu);
  return largest;
}

// ACIQ's optimal limit for 8 bits and a Laplace distribution, in units of the distribution's mean
// magnitude (arXiv 1810.05723).
inline constexpr double kLaplaceClip8 = 9.89675982;

// The order of additions is part of the definition: element i goes to partial sum i mod 8, the
// partial sums are added in order.
template <typename T>
double sum_of_magnitudes(std::span<const T> values) {
  std::array<double, 8> partial{};
  std::size_t i = 0;
  for (; i + partial.size() <= values.size(); i += partial.size()) {
    for (std::size_t k = 0; k < partial.size(); ++k)
      partial[k] += std::abs(static_cast<double>(as_float(values[i + k])));
  }
  for (std::size_t k = 0; i < values.size(); ++i, ++k)
    partial[k] += std::abs(static_cast<double>(as_float(values[i])));
  double sum = 0.0;
  for (const double part : partial) sum += part;
  return sum;
}

// Returns the magnitude that the packet's scale must cover, as float bits: the caller's bound,
// ACIQ's clip, or the largest, `amax_bits`. Returns `amax_bits` if it is not finite.
template <typename T>
std::uint32_t packet_limit(const CodecOptions& options, std::span<const T> values,
                           std::uint32_t amax_bits) {
  if (amax_bits >= kInfinityBits) return amax_bits;
  if (options.bound > 0.0f) return std::bit_cast<std::uint32_t>(options.bound);
  if (!options.clip || values.empty()) return amax_bits;
  const auto clip = static_cast<float>(kLaplaceClip8 * sum_of_magnitudes(values) /
                                       static_cast<double>(values.size()));
  return std::min(amax_bits, std::bit_cast<std::uint32_t>(clip));
}

}  // namespace leeway::codec
