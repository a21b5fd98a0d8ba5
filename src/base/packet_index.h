// Three numbers of a packet, as types that cannot be mixed up.
//
// A sender hands out the packets of a shard in a permuted order, and the receiver reduces them
// chunk by chunk. So one packet has an index, a position and a chunk. Members of
// schedule::PacketGrid convert between index and chunk. Only the sender's schedule::PacketCursor
// converts a position into an index. The member `value` is for arithmetic and for the wire.
#pragma once

#include <compare>
#include <cstdint>

namespace leeway {

// Number of a packet in its shard, in the order of the shard's elements.
struct PacketIndex {
  std::uint32_t value = 0;

  PacketIndex& operator++() {
    ++value;
    return *this;
  }
  friend auto operator<=>(const PacketIndex&, const PacketIndex&) = default;
};

// Number of packets that the sender handed out before this one in the same pass.
struct PacketPosition {
  std::uint32_t value = 0;

  friend auto operator<=>(const PacketPosition&, const PacketPosition&) = default;
};

// Number of a chunk in its shard: a run of packets that is reduced, and sent on, as one.
struct ChunkIndex {
  std::uint32_t value = 0;

  ChunkIndex& operator++() {
    ++value;
    return *this;
  }
  friend auto operator<=>(const ChunkIndex&, const ChunkIndex&) = default;
};

}  // namespace leeway
