#include "schedule/packet_cursor.h"

#include <numeric>

#include "base/philox.h"

namespace leeway::schedule {

PacketCursor::PacketCursor(const PacketGrid& grid, Keys keys, const ChunkQueue* queue,
                           const Bitmap* ready)
    : grid_(grid), keys_(keys), queue_(queue), ready_(ready), packets_(grid.packets()) {
  if (queue_ == nullptr) start_ = start_of(grid, keys.rotation);
}

PacketIndex PacketCursor::start_of(const PacketGrid& grid, std::uint64_t rotation_key) {
  if (grid.packets() == 0 || rotation_key == kInOrder) return {};
  return {static_cast<std::uint32_t>(keyed_hash(rotation_key, 0, 0, 0, 0) % grid.packets())};
}

void PacketCursor::enter_chunk(ChunkIndex chunk) {
  chunk_ = chunk;
  chunk_size_ = grid_.chunk_size(chunk);
  shift_ = 0;
  multiplier_ = 1;
  if (keys_.inner == kInOrder) return;
  const std::uint64_t draw = keyed_hash(keys_.inner, chunk.value, 1, 0, 0);
  shift_ = static_cast<std::uint32_t>(draw >> 32) % chunk_size_;
  multiplier_ = 1 + static_cast<std::uint32_t>(draw) % chunk_size_;
  while (std::gcd(multiplier_, chunk_size_) != 1) ++multiplier_;
}

bool PacketCursor::available() const {
  if (exhausted()) return false;
  if (queue_ != nullptr) return chunk_at_ < chunk_size_ || queue_at_ < queue_->size();
  return ready_ == nullptr || ready_->test(grid_.chunk_of(cyclic()).value);
}

std::optional<PacketIndex> PacketCursor::next() {
  if (!available()) return std::nullopt;
  if (queue_ != nullptr) {
    if (chunk_at_ == chunk_size_) {
      enter_chunk((*queue_)[queue_at_++]);
      chunk_at_ = 0;
    }
  } else {
    // Cyclic order: the chunk of the starting packet is visited twice, its two parts making one
    // whole.
    const PacketIndex at = cyclic();
    const ChunkIndex chunk = grid_.chunk_of(at);
    if (chunk_size_ == 0 || chunk != chunk_) enter_chunk(chunk);
    chunk_at_ = at.value - grid_.chunk_begin(chunk).value;
  }
  ++position_;
  return grid_.packet_in(chunk_, permuted(chunk_at_++));
}

}  // namespace leeway::schedule
