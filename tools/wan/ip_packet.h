// Reads and changes IPv4 packets, as far as the laboratory needs it. All offsets are checked
// against the packet's length.
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

// Read and write numbers in packets. The caller must have checked the packet's length.
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
  // valid() will return false if this is no IPv4 packet, or is shorter than its header says.
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

struct Transport {
  bool tcp = false;
  std::size_t begin = 0;    // offset of this header in the packet
  std::size_t payload = 0;  // offset of the payload
  std::size_t checksum() const { return begin + (tcp ? 16 : 6); }
  bool operator==(const Transport&) const = default;
};

// Returns nullopt for other protocols, for fragments, and for lengths that contradict each other.
std::optional<Transport> find_transport(ByteSpan packet);

// Returns the sum over addresses, protocol and length. If the network card is to complete the
// checksum, the kernel leaves this sum in its place.
std::uint32_t pseudo_header_sum(ByteSpan packet, const Transport& transport);

// Sets a valid packet's total length, and updates the header's checksum.
void set_total_bytes(std::span<std::byte> packet, std::size_t total);

// Marks a valid packet "congestion experienced" (ECN), and updates the header's checksum.
void mark_congestion(std::span<std::byte> packet);

// Makes a router's answer to a valid packet that exceeds the next link's MTU: ICMP "fragmentation
// needed". Writes it to `out`, which holds kIcmpBytesMax, and returns its length.
inline constexpr std::size_t kIcmpBytesMax = 20 + 8 + 60 + 8;
std::size_t write_too_big(ByteSpan packet, std::uint32_t mtu, std::span<std::byte> out);

}  // namespace leeway::lab
