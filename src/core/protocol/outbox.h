// Two queues of peers: those that control datagrams wait for, and those that data waits for.
// Control goes first. Peers are served in rotation, and each is in either queue at most once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/contracts.h"
#include "leeway/types.h"

namespace leeway::protocol {

// A first-in first-out queue of fixed capacity. Allocates at construction only.
template <typename T>
class RingQueue {
 public:
  explicit RingQueue(std::size_t capacity) : items_(capacity + 1) {}
  bool empty() const { return head_ == tail_; }
  void push(T item) {
    items_[tail_] = item;
    tail_ = next(tail_);
    LEEWAY_ASSERT(tail_ != head_);
  }
  T pop() {
    LEEWAY_ASSERT(!empty());
    T item = items_[head_];
    head_ = next(head_);
    return item;
  }

 private:
  std::size_t next(std::size_t i) const { return i + 1 == items_.size() ? 0 : i + 1; }
  std::vector<T> items_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

class Outbox {
 public:
  // Data may also be queued for kEveryRank.
  explicit Outbox(int peers) : control_(peers), data_(peers + 1), queued_(peers) {}

  void queue_control(Rank peer) {
    if (mark(queued_[peer], kControl)) control_.push(peer);
  }
  void queue_data(Rank peer) {
    if (mark(flags_of(peer), kData)) data_.push(peer);
  }

  bool control_empty() const { return control_.empty(); }
  bool data_empty() const { return data_.empty(); }
  // Returns the next peer, which may be queued again from then on.
  std::optional<Rank> next_control() {
    if (control_.empty()) return std::nullopt;
    const Rank peer = control_.pop();
    queued_[peer] &= static_cast<std::uint8_t>(~kControl);
    return peer;
  }
  std::optional<Rank> next_data() {
    if (data_.empty()) return std::nullopt;
    const Rank peer = data_.pop();
    flags_of(peer) &= static_cast<std::uint8_t>(~kData);
    return peer;
  }

 private:
  static constexpr std::uint8_t kControl = 1;
  static constexpr std::uint8_t kData = 2;

  static bool mark(std::uint8_t& flags, std::uint8_t flag) {
    const bool fresh = (flags & flag) == 0;
    flags |= flag;
    return fresh;
  }
  std::uint8_t& flags_of(Rank peer) { return peer == kEveryRank ? group_queued_ : queued_[peer]; }

  RingQueue<Rank> control_;
  RingQueue<Rank> data_;
  std::vector<std::uint8_t> queued_;  // by peer: the queues that it waits in
  std::uint8_t group_queued_ = 0;
};

}  // namespace leeway::protocol
