// Copies of datagrams that the fault transport keeps for later. All memory is allocated at
// construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "impairment/fault_plan.h"
#include "leeway/transport.h"

namespace leeway::transport {

using HeldIndex = std::uint32_t;

struct Held {
  Rank from = kNoRank;
  std::uint32_t bytes = 0;
  Ecn ecn = Ecn::none;
  impairment::Fate fate;  // faults that are still to happen to it
  Instant due;            // when it is released at the latest
};

class HeldPool {
 public:
  HeldPool(std::size_t slots, std::size_t datagram_bytes);

  // Copies the datagram into a free slot. Returns nullopt if no slot is free or the datagram is
  // larger than a slot.
  std::optional<HeldIndex> keep(const Received& datagram);
  void free(HeldIndex index) { free_.push_back(index); }

  Held& operator[](HeldIndex index) { return held_[index]; }
  const Held& operator[](HeldIndex index) const { return held_[index]; }
  Received view(HeldIndex index) {
    const Held& held = held_[index];
    return {held.from, {memory_of(index), held.bytes}, held.ecn};
  }

 private:
  std::byte* memory_of(HeldIndex index) { return memory_.get() + index * datagram_bytes_; }

  const std::size_t datagram_bytes_;
  // Not initialised, so pages that are never used take no memory
  std::unique_ptr<std::byte[]> memory_;
  std::vector<Held> held_;
  std::vector<HeldIndex> free_;
};

// A first-in first-out queue of at most `capacity` held datagrams.
class HeldQueue {
 public:
  explicit HeldQueue(std::size_t capacity) : ring_(capacity) {}
  bool empty() const { return count_ == 0; }
  HeldIndex front() const { return ring_[head_]; }
  void push(HeldIndex index) { ring_[(head_ + count_++) % ring_.size()] = index; }
  HeldIndex pop() {
    const HeldIndex index = front();
    head_ = (head_ + 1) % ring_.size();
    --count_;
    return index;
  }

 private:
  std::vector<HeldIndex> ring_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace leeway::transport
