// Floats that exercise every rule of the codecs, for tests that compare two encoders.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/philox.h"

namespace leeway::codec {

inline constexpr std::uint64_t kValueSeed = 20;

// Random bits of value i.
inline std::uint64_t value_bits(std::size_t i, std::uint32_t stream) {
  return keyed_hash(kValueSeed, static_cast<std::uint32_t>(i), stream, 0, 0);
}

// Values that exercise every rule. mixed() draws runs of one kind each; some runs fill a block of a
// codec, others straddle two blocks.
enum class ValueKind { ordinary, any_bits, ties, zeros, not_finite, tiny, huge, equal, count };

inline float value_of(ValueKind kind, std::uint64_t bits) {
  const auto unit = static_cast<float>(to_unit(bits) * 2 - 1);
  switch (kind) {
    case ValueKind::ordinary:
      return std::ldexp(unit, static_cast<int>(bits % 32) - 16);
    case ValueKind::any_bits:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits) & 0xFF7FFFFFu);
    case ValueKind::ties:  // multiples of half a quantum of one scale or another
      return static_cast<float>(static_cast<int>(bits % 97) - 48) / 8;
    case ValueKind::zeros:
      return bits % 2 == 0 ? 0.0f : -0.0f;
    case ValueKind::not_finite:
      if (bits % 8 != 0) return unit;
      return bits % 3 == 0 ? std::numeric_limits<float>::quiet_NaN()
                           : std::copysign(std::numeric_limits<float>::infinity(), unit);
    case ValueKind::tiny:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits) & 0x81FFFFFFu);
    case ValueKind::huge:
      return std::copysign(std::ldexp(1.0f + std::abs(unit), 126), unit);
    default:
      return -3.0f;
  }
}

inline std::vector<float> mixed(std::size_t count, std::uint32_t stream) {
  std::vector<float> values(count);
  std::size_t left = 0;
  auto kind = ValueKind::ordinary;
  for (std::size_t i = 0; i < count; ++i, --left) {
    if (left == 0) {
      const std::uint64_t next = value_bits(i, stream + 1000);
      left = 1 + next % 70;
      kind = static_cast<ValueKind>((next >> 32) % static_cast<std::uint64_t>(ValueKind::count));
    }
    values[i] = value_of(kind, value_bits(i, stream));
  }
  return values;
}

inline std::vector<float> all_of(ValueKind kind, std::size_t count, std::uint32_t stream) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(kind, value_bits(i, stream));
  return values;
}

// Returns true if the floats at each place have equal bits or are both NaN.
inline bool same_floats(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
           (std::isnan(x) && std::isnan(y));
  });
}

}  // namespace leeway::codec
