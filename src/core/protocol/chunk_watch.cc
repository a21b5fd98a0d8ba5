#include "protocol/chunk_watch.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/limits.h"

namespace leeway::protocol {

std::optional<ChunkWatch::Left> ChunkWatch::on_packet(Instant now, PacketIndex index,
                                                      PacketPosition position) {
  if (position.value < limits::kEagerPackets || position.value >= grid_.packets())
    return std::nullopt;
  if (position.value < newest_) {
    overtaken_by_ = std::max(overtaken_by_, newest_ - position.value);
    return std::nullopt;
  }
  if (order_.size() == 0) {
    began_ = now;
    first_ = position.value;
  }
  follow(index, position.value);
  const std::uint32_t patience = std::max(kOvertaken, 2 * overtaken_by_);
  if (pending_count_ == 0 || patience >= Bitmap::kWordBits) return std::nullopt;
  const Pending oldest = pending_[0];
  if (newest_ - oldest.at < patience) return std::nullopt;
  std::shift_left(pending_.begin(), pending_.begin() + pending_count_--, 1);
  return oldest.left;
}

// Follows the pass to packet `index`, which is at `position` in the pass. Packets of a chunk leave
// one after the other, so inside a chunk `place_`, the packet's place in the chunk's order, grows
// by as much as the position.
void ChunkWatch::follow(PacketIndex index, std::uint32_t position) {
  const ChunkIndex chunk = grid_.chunk_of(index);
  const std::uint32_t packet = index.value - grid_.chunk_begin(chunk).value;
  const std::uint32_t place = place_ + (position - newest_);
  const bool same = chunk == chunk_ && place < order_.size() && order_.packet_at(place) == packet;
  if (same) {
    place_ = place;
  } else {
    leave_behind(order_.size(), newest_ + (order_.size() - place_));
    enter(chunk, packet, position);
  }
  newest_ = position;
  if (place_ >= told_ + kStep) leave_behind(place_, position);
}

// Starts to follow another chunk. If the pass began in the middle of this chunk, packets at places
// before its beginning have not left yet, so `told_` skips them.
void ChunkWatch::enter(ChunkIndex chunk, std::uint32_t packet, std::uint32_t position) {
  chunk_ = chunk;
  order_ = schedule::ChunkOrder(key_, chunk, grid_.chunk_size(chunk));
  place_ = order_.place_of(packet);
  told_ = place_ - std::min(place_, position);
}

// Notes that the packets of the chunk at places below `end` had left when the pass had come to
// `position`.
void ChunkWatch::leave_behind(std::uint32_t end, std::uint32_t position) {
  const std::uint32_t begin = grid_.chunk_begin(chunk_).value;
  Left left{static_cast<std::uint32_t>(begin / Bitmap::kWordBits), 0};
  for (; told_ < end; ++told_)
    left.packets |= std::uint64_t{1} << (begin + order_.packet_at(told_)) % Bitmap::kWordBits;
  if (left.packets != 0) remember(left, position);
}

void ChunkWatch::remember(const Left& left, std::uint32_t position) {
  if (pending_count_ > 0) {
    Pending& last = pending_[pending_count_ - 1];
    const std::uint64_t both = last.left.packets | left.packets;
    if (last.left.word == left.word && std::cmp_less_equal(std::popcount(both), kStep)) {
      last = {{left.word, both}, position};
      return;
    }
  }
  if (pending_count_ == pending_.size())
    std::shift_left(pending_.begin(), pending_.begin() + pending_count_--, 1);
  pending_[pending_count_++] = {left, position};
}

Duration ChunkWatch::rest(Instant now) const {
  const std::uint32_t came = newest_ - first_;
  return came == 0 ? Duration::max() : (now - began_) / came * (grid_.packets() - newest_);
}

}  // namespace leeway::protocol
