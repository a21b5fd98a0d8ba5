// Describes a datagram on the virtual network, so that tests can lose, hold back or copy particular
// ones.
#pragma once

#include <optional>
#include <vector>

#include "base/crc32c.h"
#include "wire/packet.h"

namespace leeway::testing {

inline wire::PacketType type_of(ByteSpan datagram) {
  wire::Prefix prefix;
  (void)wire::decode_prefix(datagram, nullptr, prefix);
  return prefix.type;
}
inline bool is_data(ByteSpan datagram) {
  return type_of(datagram) == wire::PacketType::data;
}

inline std::optional<wire::DataHeader> data_header_of(ByteSpan datagram) {
  wire::DataHeader header;
  ByteSpan payload;
  if (!is_data(datagram) || wire::decode_data(datagram, header, payload) != wire::Refusal::none)
    return std::nullopt;
  return header;
}

inline std::vector<std::byte> copy_of(ByteSpan datagram) {
  return {datagram.begin(), datagram.end()};
}

// Makes a valid data datagram, as rank `from` would send it.
inline std::vector<std::byte> forge_data(std::uint32_t epoch, Rank from, Rank to,
                                         const wire::DataHeader& header, std::size_t payload_bytes,
                                         std::uint32_t sequence = 1) {
  std::vector<std::byte> datagram(wire::kDataHeaderBytes + payload_bytes, std::byte{0x41});
  wire::encode_data({wire::PacketType::data, epoch, from, to, sequence}, header,
                    crc32c(ByteSpan(datagram).subspan(wire::kDataHeaderBytes)), datagram);
  return datagram;
}

}  // namespace leeway::testing
