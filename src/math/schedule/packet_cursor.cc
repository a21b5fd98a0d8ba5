#include "schedule/packet_cursor.h"

#include <numeric>

#include "base/philox.h"

namespace leeway::schedule {

ChunkOrder::ChunkOrder(std::uint64_t key, ChunkIndex chunk, std::uint32_t size) : size_(size) {
  if (key == PacketCursor::kInOrder) return;
  const std::uint64_t draw = keyed_hash(key, chunk.value, 1, 0, 0);
  shift_ = static_cast<std::uint32_t>(draw >> 32) % size;
  multiplier_ = 1 + static_cast<std::uint32_t>(draw) % size;
  while (std::gcd(multiplier_, size) != 1) ++multiplier_;
}

std::uint32_t ChunkOrder::place_of(std::uint32_t packet) const {
  std::uint32_t place = 0;
  for (std::uint32_t at = shift_; at != packet; at = (at + multiplier_) % size_) ++place;
  return place;
}

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
  order_ = ChunkOrder(keys_.inner, chunk, grid_.chunk_size(chunk));
}

bool PacketCursor::available() const {
  if (exhausted()) return false;
  if (queue_ != nullptr) return chunk_at_ < order_.size() || queue_at_ < queue_->size();
  return ready_ == nullptr || ready_->test(grid_.chunk_of(cyclic()).value);
}

std::optional<PacketIndex> PacketCursor::next() {
  if (!available()) return std::nullopt;
  if (queue_ != nullptr) {
    if (chunk_at_ == order_.size()) {
      enter_chunk((*queue_)[queue_at_++]);
      chunk_at_ = 0;
    }
  } else {
    // The flow may start within a chunk, which is visited again at the end for its first part.
    const PacketIndex at = cyclic();
    const ChunkIndex chunk = grid_.chunk_of(at);
    if (order_.size() == 0 || chunk != chunk_) enter_chunk(chunk);
    chunk_at_ = at.value - grid_.chunk_begin(chunk).value;
  }
  ++position_;
  return grid_.packet_in(chunk_, order_.packet_at(chunk_at_++));
}

}  // namespace leeway::schedule
