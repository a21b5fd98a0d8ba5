// A first-in first-out queue of fixed capacity. Allocates at construction only.
#pragma once

#include <cstddef>
#include <vector>

#include "base/contracts.h"

namespace leeway::protocol {

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

}  // namespace leeway::protocol
