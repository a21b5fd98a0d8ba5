// When which of a fixed number of timers is due: a heap in which every timer has at most one place.
// Memory is laid out once; arming costs O(log timers) where it makes a timer earlier, and one
// comparison where it does not. Disarming costs O(log timers).
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

  // The timer is due at `at`, or when it was due before, whichever is earlier.
  void arm(std::size_t timer, Instant at) {
    if (at >= due_[timer]) return;
    if (due_[timer] == Instant::infinite_future()) {
      place_[timer] = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back(static_cast<std::uint32_t>(timer));
    }
    due_[timer] = at;
    rise(place_[timer]);
  }

  // When the earliest is due; Instant::infinite_future(): none is armed.
  Instant next() const { return heap_.empty() ? Instant::infinite_future() : due_[heap_[0]]; }

  // The earliest, which is armed no more; nothing: none is due by `now`.
  std::optional<std::size_t> take_due(Instant now) {
    if (heap_.empty() || due_[heap_[0]] > now) return std::nullopt;
    const std::uint32_t timer = heap_[0];
    disarm(timer);
    return timer;
  }

  // The timer is due no more.
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
  // Earlier first, and among equals the lower number: the order does not depend on history.
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

  std::vector<Instant> due_;          // by timer; infinite: not armed
  std::vector<std::uint32_t> place_;  // by timer, while armed: in
  std::vector<std::uint32_t> heap_;   // timers
};

}  // namespace leeway::protocol
