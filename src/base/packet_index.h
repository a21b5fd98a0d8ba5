// Three numbers that say where a packet is, as types that cannot be mixed up.
//
// A sender hands out the packets of a shard in a permuted order, and the receiver reduces them
// chunk by chunk. So one packet has an index, a position and a chunk, and each is a small integer.
// Members of schedule::PacketGrid convert between index and chunk; nothing converts a position into
// an index but the sender's schedule::PacketCursor. `value` is for arithmetic and for the wire.
#pragma once

#include <compare>
#include <cstdint>

namespace leeway {

// Which packet of a shard it is, counted in the order of the shard's elements.
struct PacketIndex {
  std::uint32_t value = 0;

  PacketIndex& operator++() {
    ++value;
    return *this;
  }
  friend auto operator<=>(const PacketIndex&, const PacketIndex&) = default;
};

// How many packets its sender handed out before it in the same pass.
struct PacketPosition {
  std::uint32_t value = 0;

  friend auto operator<=>(const PacketPosition&, const PacketPosition&) = default;
};

// Which chunk of a shard it is: a run of packets that is reduced, and sent on, as one.
struct ChunkIndex {
  std::uint32_t value = 0;

  ChunkIndex& operator++() {
    ++value;
    return *this;
  }
  friend auto operator<=>(const ChunkIndex&, const ChunkIndex&) = default;
};

}  // namespace leeway
