// What the laboratory must know of an IPv4 packet. Everything is checked against its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "leeway/types.h"

namespace leeway::lab {

// An IPv4 address as a number: 10.88.0.1 is 0x0a580001.
using Address = std::uint32_t;

class Ipv4View {
 public:
  // Not valid() if it is no IPv4 packet, or shorter than it says.
  explicit Ipv4View(ByteSpan packet);

  bool valid() const { return header_bytes_ > 0; }
  std::size_t header_bytes() const { return header_bytes_; }
  Address source() const { return word(12); }
  Address destination() const { return word(16); }
  bool ecn_capable() const { return (byte(1) & 3) != 0; }
  bool dont_fragment() const { return (byte(6) & 0x40) != 0; }

 private:
  std::uint32_t byte(std::size_t at) const { return std::to_integer<std::uint32_t>(packet_[at]); }
  Address word(std::size_t at) const {
    return byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
  }

  ByteSpan packet_;
  std::size_t header_bytes_ = 0;
};

// Sets "congestion experienced" in a valid packet, and its checksum.
void mark_congestion(std::span<std::byte> packet);

// The router's answer to a valid packet that is longer than the next link takes: ICMP
// "fragmentation needed" with that link's MTU. Written to `out`, which holds kIcmpBytesMax; returns
// its length.
inline constexpr std::size_t kIcmpBytesMax = 20 + 8 + 60 + 8;
std::size_t write_too_big(ByteSpan packet, std::uint32_t mtu, std::span<std::byte> out);

}  // namespace leeway::lab
