// The settings of a codec that sender and receiver must share, packed into 16 bits of an
// operation's tag (WIRE 3.8).
#pragma once

#include <bit>
#include <cstdint>

#include "leeway/codec.h"

namespace leeway::wire {

// Packs the fields of `options` into 16 bits: bit 0 rotate, bits 1-2 draws - 1, bits 4-7
// log2(group), bits 8-15 kept.
constexpr std::uint16_t pack_settings(const CodecOptions& options) {
  const unsigned draws = options.draws - 1u;
  const auto group = static_cast<unsigned>(std::countr_zero(options.group));
  return static_cast<std::uint16_t>((options.rotate ? 1u : 0u) | (draws & 3u) << 1 |
                                    (group & 15u) << 4 | (options.kept & 0xFFu) << 8);
}

// Unpacks another rank's settings, for error texts. Options that pack_settings() does not pack keep
// their defaults.
constexpr CodecOptions unpack_settings(Codec codec, std::uint16_t settings) {
  CodecOptions options(codec);
  options.rotate = (settings & 1u) != 0;
  options.draws = static_cast<std::uint8_t>((settings >> 1 & 3u) + 1);
  options.group = static_cast<std::uint16_t>(1u << (settings >> 4 & 15u));
  options.kept = static_cast<std::uint16_t>(settings >> 8);
  return options;
}

}  // namespace leeway::wire
