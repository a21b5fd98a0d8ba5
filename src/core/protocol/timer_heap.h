// Heap of a fixed number of timers in which each has at most one place. Memory is laid out once.
// Arming costs O(log timers) if it makes a timer earlier, and one comparison if it does not.
// Disarming costs O(log timers).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/contracts.h"
#include "base/time.h"

namespace leeway::protocol {

class TimerHeap {
 public:
  explicit TimerHeap(std::size_t timers)
      : due_(timers, Instant::infinite_future()), place_(timers) {
    LEEWAY_ASSERT(timers < std::numeric_limits<std::uint32_t>::max());
    heap_.reserve(timers);
  }

  // Arms the timer for `at`, or keeps its time if that is earlier.
  void arm(std::size_t timer, Instant at) {
    if (at >= due_[timer]) return;
    if (due_[timer] == Instant::infinite_future()) {
      place_[timer] = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back(static_cast<std::uint32_t>(timer));
    }
    due_[timer] = at;
    rise(place_[timer]);
  }

  // When the earliest timer is due; Instant::infinite_future() if none is armed.
  Instant next() const { return heap_.empty() ? Instant::infinite_future() : due_[heap_[0]]; }

  // Returns the earliest timer and disarms it, or nullopt if none is due by `now`.
  std::optional<std::size_t> take_due(Instant now) {
    if (heap_.empty() || due_[heap_[0]] > now) return std::nullopt;
    const std::uint32_t timer = heap_[0];
    disarm(timer);
    return timer;
  }

  void disarm(std::size_t timer) {
    if (due_[timer] == Instant::infinite_future()) return;
    due_[timer] = Instant::infinite_future();
    const std::size_t place = place_[timer];
    const std::uint32_t last = heap_.back();
    heap_.pop_back();
    if (last == timer) return;
    put(place, last);
    rise(place);
    sink(place_[last]);
  }

  std::size_t size() const { return due_.size(); }

 private:
  // Timers that are due at the same time go by number, so the order does not depend on history.
  bool before(std::uint32_t a, std::uint32_t b) const {
    return due_[a] != due_[b] ? due_[a] < due_[b] : a < b;
  }
  void put(std::size_t place, std::uint32_t timer) {
    heap_[place] = timer;
    place_[timer] = static_cast<std::uint32_t>(place);
  }
  void rise(std::size_t place) {
    const std::uint32_t timer = heap_[place];
    for (; place > 0 && before(timer, heap_[(place - 1) / 2]); place = (place - 1) / 2)
      put(place, heap_[(place - 1) / 2]);
    put(place, timer);
  }
  void sink(std::size_t place) {
    const std::uint32_t timer = heap_[place];
    for (;;) {
      std::size_t child = 2 * place + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], timer)) break;
      put(place, heap_[child]);
      place = child;
    }
    put(place, timer);
  }

  std::vector<Instant> due_;          // by timer; infinite future if not armed
  std::vector<std::uint32_t> place_;  // by timer, while armed: its place in heap_
  std::vector<std::uint32_t> heap_;   // timers
};

}  // namespace leeway::protocol
