// The order in which a sender walks the packets of one flow.
//
// The order is a keyed permutation that does not depend on values. Some losses hit *places in the
// sending order*: tail drop, a deadline's cut, the middle of a burst. Under the permutation they
// fall on every element with the same probability. Estimators that divide by the share of packets
// which arrived need this (src/math/estimate/README.md).
//
// Two levels keep it cache-friendly. Inside a chunk, packets follow an affine permutation i -> (a i
// + b) mod m. Chunks follow each other cyclically from a random starting packet. That packet is
// uniform over the flow, and so is the place of every packet, whatever the sizes of the chunks.
// Senders to one owner share the starting packet: their contributions to a chunk arrive at about
// the same time, and the owner can reduce it early.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bitmap.h"
#include "schedule/packet_grid.h"

namespace leeway::schedule {

// Chunks in the order in which a reduction finished them. A flow that follows the reduction sends
// them in this order.
class ChunkQueue {
 public:
  void reset(std::uint32_t chunks) {
    order_.clear();
    order_.reserve(chunks);
  }
  void push(ChunkIndex chunk) { order_.push_back(chunk); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(order_.size()); }
  ChunkIndex operator[](std::uint32_t i) const { return order_[i]; }

 private:
  std::vector<ChunkIndex> order_;
};

// The order of the packets inside a chunk. A receiver can compute it as well as the sender.
class ChunkOrder {
 public:
  ChunkOrder() = default;
  // A chunk has `size` >= 1 packets. The key is PacketCursor::Keys::inner.
  ChunkOrder(std::uint64_t key, ChunkIndex chunk, std::uint32_t size);

  std::uint32_t size() const { return size_; }
  // packet_at(): the packet of the chunk that is sent at this place. place_of(): its inverse.
  // Arguments and results are below size().
  std::uint32_t packet_at(std::uint32_t place) const {
    return (multiplier_ * place + shift_) % size_;
  }
  std::uint32_t place_of(std::uint32_t packet) const;

 private:
  std::uint32_t size_ = 0;
  std::uint32_t multiplier_ = 1;
  std::uint32_t shift_ = 0;
};

class PacketCursor {
 public:
  // With this key, packets are sent by rising index. It serves to show the effect of the
  // permutation.
  static constexpr std::uint64_t kInOrder = 0;
  struct Keys {
    std::uint64_t rotation = kInOrder;  // shared by all senders to one owner
    std::uint64_t inner = kInOrder;     // for one sender and destination
  };

  PacketCursor() = default;
  // With a queue, packets of its chunks are available. Without a queue, packets of the chunks set
  // in `ready` are available, or all packets if `ready` is null. Queue and `ready` must outlive the
  // cursor.
  PacketCursor(const PacketGrid& grid, Keys keys, const ChunkQueue* queue,
               const Bitmap* ready = nullptr);

  // Returns the packet with which a flow without a queue starts.
  static PacketIndex start_of(const PacketGrid& grid, std::uint64_t rotation_key);

  // Returns the next packet; nullopt if none is available now.
  std::optional<PacketIndex> next();
  bool available() const;
  // Returns the result of next(), without taking the packet.
  std::optional<PacketIndex> peek() const {
    PacketCursor ahead = *this;
    return ahead.next();
  }
  // Position of the next packet: how many were handed out so far.
  PacketPosition position() const { return {position_}; }
  bool exhausted() const { return position_ == packets_; }

 private:
  // Without a queue: the packet that is next before the permutation inside its chunk.
  PacketIndex cyclic() const { return {(start_.value + position_) % packets_}; }
  void enter_chunk(ChunkIndex chunk);

  PacketGrid grid_;
  Keys keys_;
  const ChunkQueue* queue_ = nullptr;
  const Bitmap* ready_ = nullptr;
  std::uint32_t packets_ = 0;
  std::uint32_t position_ = 0;
  PacketIndex start_;           // start of the cyclic order
  std::uint32_t queue_at_ = 0;  // chunks taken from the queue
  ChunkIndex chunk_;
  // Order of the packets in chunk_; empty before the first chunk.
  ChunkOrder order_;
  std::uint32_t chunk_at_ = 0;  // packets of this chunk handed out
};

}  // namespace leeway::schedule
