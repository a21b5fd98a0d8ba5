// Tracks which packets of this rank's shard still wait for contributions, and which are reduced.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bitmap.h"
#include "base/contracts.h"
#include "schedule/packet_cursor.h"
#include "schedule/packet_grid.h"

namespace leeway::collective {

class PacketProgress {
 public:
  // `contributions`: how many other ranks contribute to each packet.
  void reset(const schedule::PacketGrid& grid, int contributions) {
    grid_ = grid;
    missing_.assign(grid.packets(), static_cast<std::uint16_t>(contributions));
    reduced_.resize(grid.packets());
    chunk_left_.resize(grid.chunks());
    for (ChunkIndex c; c.value < grid.chunks(); ++c) chunk_left_[c.value] = grid.chunk_size(c);
  }

  // Counts a contribution to the packet. Returns true if it was the last one missing.
  bool arrive(PacketIndex index) {
    LEEWAY_ASSERT(missing_[index.value] > 0);
    return --missing_[index.value] == 0;
  }
  bool is_reduced(PacketIndex index) const { return reduced_.test(index.value); }
  bool is_reduced(ChunkIndex chunk) const { return chunk_left_[chunk.value] == 0; }
  // Marks the packet as reduced. If its chunk is now complete, pushes the chunk to `done`.
  void reduce(PacketIndex index, schedule::ChunkQueue& done) {
    const ChunkIndex chunk = grid_.chunk_of(index);
    LEEWAY_ASSERT(!is_reduced(index) && !is_reduced(chunk));
    reduced_.set(index.value);
    if (--chunk_left_[chunk.value] == 0) done.push(chunk);
  }

 private:
  schedule::PacketGrid grid_;
  std::vector<std::uint16_t> missing_;
  Bitmap reduced_;
  std::vector<std::uint32_t> chunk_left_;  // packets of a chunk that are not reduced
};

}  // namespace leeway::collective
