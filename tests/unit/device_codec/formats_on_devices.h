// The formats that have kernels, and a packet's memory at any address.
#pragma once

#include <vector>

#include "codec/codec.h"
#include "device_codec/formats.h"

namespace leeway::device_codec {

// Returns every codec with kernels, in both roundings, under every scale rule, with and without a
// bound.
inline std::vector<CodecOptions> every_option_on_devices() {
  std::vector<CodecOptions> all;
#define LEEWAY_ADD(name) all.emplace_back(Codec::name);
  LEEWAY_DEVICE_CODECS(LEEWAY_ADD)
#undef LEEWAY_ADD
  std::vector<CodecOptions> result;
  for (CodecOptions options : all) {
    const bool has_rules = to_string(options.codec).starts_with("mx");
    options.rounding = Rounding::stochastic;
    result.push_back(options);
    options.rounding = Rounding::nearest;
    if (!has_rules) result.push_back(options);
    for (const ScaleRule rule : {ScaleRule::floor, ScaleRule::even, ScaleRule::ceil}) {
      options.scale_rule = rule;
      if (has_rules) result.push_back(options);
    }
    options.scale_rule = ScaleRule::automatic;
    options.bound = 0.75f;
    const bool spans_packet =
        codec::scaled_layout(options.codec).packet_scale != codec::ScaleKind::none;
    for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
      options.rounding = rounding;
      if (spans_packet) result.push_back(options);
    }
  }
  return result;
}

inline constexpr codec::Place kPlace{.seed = 0x123456789ABCDEF0,
                                     .step = 7,
                                     .source = 3,
                                     .first_element = (std::uint64_t{1} << 36) - 32};

// Rounds floats to a tensor of this type as the processor does.
inline std::vector<std::byte> tensor_of(DataType type, std::span<const float> values) {
  const codec::Format format = codec::format_of(Codec::native, type);
  std::vector<std::byte> bytes(values.size() * size_of(type));
  codec::encode(format, values, {}, bytes);
  return bytes;
}

inline std::size_t bytes_of(const codec::Format& format, const Packets& packets) {
  if (packets.count == 0) return 0;
  const std::uint64_t full = std::uint64_t{packets.count - 1} * packets.packet_elements;
  return std::size_t{packets.count - 1} * packets.packet_bytes +
         format.encoded_bytes(packets.elements - full);
}

// Encodes the packets by src/math/codec.
inline std::vector<std::byte> defined_packets(const codec::Format& format, const Packets& packets,
                                              std::span<const std::byte> tensor,
                                              const codec::Place& place) {
  std::vector<std::byte> out(bytes_of(format, packets));
  const std::size_t element = size_of(format.element);
  for (std::uint32_t i = 0; i < packets.count; ++i) {
    const PacketOfJob packet(packets, i);
    codec::Place own = place;
    own.first_element += packet.first;
    codec::encode_elements(
        format, tensor.subspan(packet.first * element, packet.elements * element), own,
        std::span(out).subspan(packet.at, format.encoded_bytes(packet.elements)));
  }
  return out;
}

}  // namespace leeway::device_codec
