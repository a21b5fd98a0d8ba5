// Helpers that encode and decode into buffers of exactly the right size, and lists of formats to
// test.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codec/codec.h"

namespace leeway::codec {

inline Format nearest(CodecOptions options) {
  options.rounding = Rounding::nearest;
  return format_of(options, DataType::f32);
}
inline Format stochastic(CodecOptions options) {
  options.rounding = Rounding::stochastic;
  return format_of(options, DataType::f32);
}
inline std::string name_of(const Format& format) {
  return to_string(format.options);
}

inline std::vector<std::byte> encoded(const Format& format, std::span<const float> values,
                                      const Place& place = {}) {
  std::vector<std::byte> bytes(format.encoded_bytes(values.size()), std::byte{0xA5});
  encode(format, values, place, bytes);
  return bytes;
}

inline std::vector<float> decoded(const Format& format, std::span<const std::byte> bytes,
                                  std::size_t count, const Place& place = {}) {
  std::vector<float> values(count, -1.0f);
  decode(format, bytes, place, values);
  return values;
}

inline std::vector<float> sent(const Format& format, std::span<const float> values,
                               const Place& place = {}) {
  return decoded(format, encoded(format, values, place), values.size(), place);
}

// Codecs with a float32 scale for each packet; MX codecs; all codecs with a scale for each block.
inline constexpr std::array kPacketScaledCodecs = {Codec::fp8_e4m3, Codec::fp8_e5m2, Codec::luq,
                                                   Codec::int8};
inline constexpr std::array kMxCodecs = {Codec::mxfp8_e4m3, Codec::mxfp8_e5m2, Codec::mxfp6_e2m3,
                                         Codec::mxfp6_e3m2, Codec::mxfp4};
inline constexpr std::array kBlockScaledCodecs = {
    Codec::fp8_e4m3_block, Codec::fp8_e5m2_block, Codec::mxfp8_e4m3,
    Codec::mxfp8_e5m2,     Codec::mxfp6_e2m3,     Codec::mxfp6_e3m2,
    Codec::mxfp4,          Codec::nvfp4,          Codec::nvfp4_te};

// Returns each codec with nearest and with stochastic rounding; luq has only the latter.
template <std::size_t count>
std::vector<Format> in_both_roundings(const std::array<Codec, count>& codecs) {
  std::vector<Format> formats;
  for (const CodecOptions options : codecs) {
    if (options.codec != Codec::luq) formats.push_back(nearest(options));
    formats.push_back(stochastic(options));
  }
  return formats;
}

inline std::vector<Format> all_scaled_formats() {
  std::vector<Format> formats = in_both_roundings(kBlockScaledCodecs);
  for (const Format& format : in_both_roundings(kPacketScaledCodecs)) formats.push_back(format);
  return formats;
}

}  // namespace leeway::codec
