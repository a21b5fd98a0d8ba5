// The definition of the rotation, element by element.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "codec/rotation.h"

namespace leeway::codec::scalar {
namespace {

void flip(const Place& place, std::span<float> values) {
  PhiloxCounter signs{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t element = place.first_element + i;
    if (i == 0 || element % kSignGroup == 0) signs = signs_of_group(place, element / kSignGroup);
    const std::size_t j = element % kSignGroup;
    const std::uint32_t negative = signs[j / 32] >> j % 32 & 1;
    values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(values[i]) ^ negative << 31);
  }
}

// Walsh-Hadamard transform in the natural order, orthonormal: its own inverse.
void transform_block(std::span<float> block) {
  const float factor = rotation_factor(block.size());
  for (float& value : block) value *= factor;
  for (std::size_t stride = 1; stride < block.size(); stride *= 2) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      if ((i & stride) != 0) continue;
      const float low = block[i];
      const float high = block[i + stride];
      block[i] = low + high;
      block[i + stride] = low - high;
    }
  }
}

void transform(std::span<float> values) {
  while (!values.empty()) {
    const std::size_t length = std::min(kRotationElements, std::bit_floor(values.size()));
    transform_block(values.first(length));
    values = values.subspan(length);
  }
}

}  // namespace

void rotate(const Place& place, std::span<float> values) {
  flip(place, values);
  transform(values);
}

void unrotate(const Place& place, std::span<float> values) {
  transform(values);
  flip(place, values);
}

}  // namespace leeway::codec::scalar
