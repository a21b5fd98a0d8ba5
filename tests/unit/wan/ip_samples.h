// IPv4 packets for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ip_packet.h"

namespace leeway::lab {

// Makes a packet of `bytes` bytes with headers, at least 28, and a right checksum. `ecn` is the two
// lowest bits of its second byte.
inline std::vector<std::byte> ip_packet(Address from, Address to, std::size_t bytes,
                                        unsigned ecn = 0) {
  std::vector<std::byte> packet(bytes);
  const auto put = [&](std::size_t at, std::uint32_t value, int count) {
    for (int i = 0; i < count; ++i) {
      packet[at + static_cast<std::size_t>(i)] =
          static_cast<std::byte>(value >> 8 * (count - 1 - i));
    }
  };
  put(0, 0x45, 1);
  put(1, ecn, 1);
  put(2, static_cast<std::uint32_t>(bytes), 2);
  put(6, 0x4000, 2);  // do not fragment
  put(8, 64, 1);
  put(9, 17, 1);
  put(12, from, 4);
  put(16, to, 4);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) {
    sum += std::to_integer<std::uint32_t>(packet[i]) << 8 |
           std::to_integer<std::uint32_t>(packet[i + 1]);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  put(10, ~sum & 0xffff, 2);
  return packet;
}

// Returns 0xffff if the checksum over these bytes is right.
inline std::uint32_t ones_sum(ByteSpan bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    sum += std::to_integer<std::uint32_t>(bytes[i]) << 8 |
           std::to_integer<std::uint32_t>(bytes[i + 1]);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

}  // namespace leeway::lab
