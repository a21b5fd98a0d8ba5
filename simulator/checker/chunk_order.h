// The order in which all senders walk the chunks of an owner's shard, and how far a position in it
// proves that a sender has come (rules: src/collective/README.md, "settled without waiting").
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

  // Chunks that lie behind a sender of whom the packet at this position came; one chunk's worth of
  // packets is left for those that were overtaken.
  std::uint32_t passed(std::uint32_t position) const {
    const std::uint32_t first = grid_.chunk_of(start_);
    const std::uint32_t first_part = grid_.chunk_begin(first) + grid_.chunk_size(first) - start_;
    if (position < first_part + grid_.chunk_packets()) return 0;
    const std::uint32_t at = (start_ + position - grid_.chunk_packets()) % grid_.packets();
    return (grid_.chunk_of(at) + grid_.chunks() - first - 1) % grid_.chunks();
  }

  // Place of a packet's chunk in that order; the chunk in which all start is the last.
  std::uint32_t place(std::uint32_t index) const {
    const std::uint32_t first = grid_.chunk_of(start_);
    return (grid_.chunk_of(index) + 2 * grid_.chunks() - first - 1) % grid_.chunks();
  }

 private:
  schedule::PacketGrid grid_;
  std::uint32_t start_;
};

}  // namespace leeway::sim
