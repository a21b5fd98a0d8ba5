// What the laboratory must know of an IPv4 packet. Everything is checked against its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "leeway/types.h"

namespace leeway::lab {

// An IPv4 address as a number: 10.88.0.1 is 0x0a580001.
using Address = std::uint32_t;

inline constexpr std::size_t kPacketBytesMax = 65535;

// Numbers as they stand in packets. The bytes are there.
inline std::uint32_t get16(ByteSpan bytes, std::size_t at) {
  return std::to_integer<std::uint32_t>(bytes[at]) << 8 |
         std::to_integer<std::uint32_t>(bytes[at + 1]);
}
inline std::uint32_t get32(ByteSpan bytes, std::size_t at) {
  return get16(bytes, at) << 16 | get16(bytes, at + 2);
}
inline void put16(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  bytes[at] = static_cast<std::byte>(value >> 8);
  bytes[at + 1] = static_cast<std::byte>(value);
}
inline void put32(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  put16(bytes, at, value >> 16);
  put16(bytes, at + 2, value);
}

class Ipv4View {
 public:
  // Not valid() if it is no IPv4 packet, or shorter than it says.
  explicit Ipv4View(ByteSpan packet);

  bool valid() const { return header_bytes_ > 0; }
  std::size_t header_bytes() const { return header_bytes_; }
  std::size_t total_bytes() const { return get16(packet_, 2); }
  Address source() const { return get32(packet_, 12); }
  Address destination() const { return get32(packet_, 16); }
  bool ecn_capable() const { return (byte(1) & 3) != 0; }
  bool dont_fragment() const { return (byte(6) & 0x40) != 0; }
  bool fragment() const { return (get16(packet_, 6) & 0x3fff) != 0; }
  std::uint32_t protocol() const { return byte(9); }

 private:
  std::uint32_t byte(std::size_t at) const { return std::to_integer<std::uint32_t>(packet_[at]); }

  ByteSpan packet_;
  std::size_t header_bytes_ = 0;
};

// Where a packet's UDP or TCP header lies.
struct Transport {
  bool tcp = false;
  std::size_t begin = 0;    // of its header, in the packet
  std::size_t payload = 0;  // begins here
  std::size_t checksum() const { return begin + (tcp ? 16 : 6); }
  bool operator==(const Transport&) const = default;
};

// Nothing for other protocols, for fragments, and where lengths do not agree with each other.
std::optional<Transport> find_transport(ByteSpan packet);

// Of the addresses, the protocol and the length: what the kernel leaves in the checksum's place
// when a network card is to complete it.
std::uint32_t pseudo_header_sum(ByteSpan packet, const Transport& transport);

// Sets the total length of a valid packet, and the header's checksum.
void set_total_bytes(std::span<std::byte> packet, std::size_t total);

// Sets "congestion experienced" in a valid packet, and its checksum.
void mark_congestion(std::span<std::byte> packet);

// The router's answer to a valid packet that is longer than the next link takes: ICMP
// "fragmentation needed" with that link's MTU. Written to `out`, which holds kIcmpBytesMax; returns
// its length.
inline constexpr std::size_t kIcmpBytesMax = 20 + 8 + 60 + 8;
std::size_t write_too_big(ByteSpan packet, std::uint32_t mtu, std::span<std::byte> out);

}  // namespace leeway::lab
