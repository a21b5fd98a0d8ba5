// The order in which all senders send the chunks of an owner's shard. A packet's position in this
// order proves how many chunks its sender has sent (src/core/collective/README.md, "settled without
// waiting").
#pragma once

#include <cstdint>

#include "base/philox.h"
#include "schedule/packet_cursor.h"
#include "schedule/packet_grid.h"

namespace leeway::sim {

class ChunkOrder {
 public:
  ChunkOrder(const schedule::PacketGrid& grid, std::uint64_t rotation_key)
      : grid_(grid), start_(schedule::PacketCursor::start_of(grid, rotation_key)) {}

  // Returns how many chunks a sender has certainly sent if a packet at this position came. The last
  // packets before the position, as many as a chunk has, may have been overtaken, so they do not
  // count.
  std::uint32_t passed(PacketPosition position) const {
    const ChunkIndex first = grid_.chunk_of(start_);
    const std::uint32_t first_part =
        grid_.chunk_begin(first).value + grid_.chunk_size(first) - start_.value;
    if (position.value < first_part + grid_.chunk_packets()) return 0;
    const PacketIndex at{(start_.value + position.value - grid_.chunk_packets()) % grid_.packets()};
    return behind(first, at);
  }

  // Returns the place of a packet's chunk in this order. All senders start inside the same chunk.
  // That chunk has the last place.
  std::uint32_t place(PacketIndex index) const { return behind(grid_.chunk_of(start_), index); }

 private:
  // Number of chunks from the one after `first`, cyclically, to the packet's chunk.
  std::uint32_t behind(ChunkIndex first, PacketIndex index) const {
    return (grid_.chunk_of(index).value + grid_.chunks() - first.value + grid_.chunks() - 1) %
           grid_.chunks();
  }

  schedule::PacketGrid grid_;
  PacketIndex start_;
};

}  // namespace leeway::sim
