// The fields of a datagram that decide its fate under injected faults. The same packet has the same
// address over every transport and in the simulator, whenever it comes.
#pragma once

#include <cstdint>

#include "base/packet_index.h"
#include "leeway/types.h"

namespace leeway::impairment {

struct PacketAddress {
  Rank source = kNoRank;
  Rank destination = kNoRank;
  bool control = false;  // anything that carries no tensor data

  // Set only for data: whether the checksum covers the payload, and the packet's place in its
  // operation.
  bool payload_summed = true;
  std::uint32_t round = 0;
  std::uint8_t phase = 0;     // 0 reduce, 1 spread, 2 point to point
  std::uint16_t attempt = 0;  // 0 = first pass
  PacketIndex index;          // in the shard
  PacketPosition position;    // in the sender's order of its pass

  // Set only for control: type and sequence number from the prefix.
  std::uint8_t type = 0;
  std::uint32_t sequence = 0;
};

// Reads the address that a datagram claims, and puts `receiver` in as its destination. So a
// multicast datagram has a fate of its own at each receiver. The checksum is not verified. Returns
// false if `datagram` is not one of Leeway.
bool read_address(ByteSpan datagram, Rank receiver, PacketAddress& address);

}  // namespace leeway::impairment
