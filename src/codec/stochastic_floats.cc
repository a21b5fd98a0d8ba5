// Draws the random words of a block of 16 elements and rounds with them.
#include "codec/stochastic_floats.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/random_bytes.h"

namespace leeway::codec {
namespace {

using RandomWords = std::array<std::uint16_t, kRandomBlockElements>;

RandomWords random_words(const Place& place, std::uint64_t block) {
  RandomWords words;
  for (std::uint32_t draw = 0; draw < 2; ++draw) {
    const auto bytes = random_bytes(place, kRoundingStream, block, draw);
    for (std::size_t j = 0; j < 8; ++j) {
      words[8 * draw + j] = static_cast<std::uint16_t>(bytes[2 * j] | bytes[2 * j + 1] << 8);
    }
  }
  return words;
}

std::uint16_t encode_one(Codec codec, float value, std::uint16_t random) {
  return codec == Codec::fp16 ? half_from_float(value, random).bits
                              : bfloat16_from_float(value, random).bits;
}

}  // namespace

void encode_floats_stochastic(Codec codec, std::span<const float> in, const Place& place,
                              std::byte* out) {
  for (std::size_t first = 0; first < in.size(); first += kRandomBlockElements) {
    const auto random =
        random_words(place, (place.first_element + first) / kRandomBlockElements);
    const std::size_t count = std::min(kRandomBlockElements, in.size() - first);
    for (std::size_t j = 0; j < count; ++j) {
      const std::uint16_t code = encode_one(codec, in[first + j], random[j]);
      std::memcpy(out + 2 * (first + j), &code, sizeof(code));
    }
  }
}

}  // namespace leeway::codec
