// The simulator's list of future events. Events leave in ascending (time, sequence).
//
// Promises:
//   - Total order. Events of one time leave in the order of their pushes. So a run depends only on
//     its input, not on addresses of objects or on the tuning of this queue.
//   - push and pop cost O(1) amortised for any spread of times: an event moves at most once per
//     level.
//   - Memory grows only when more events are pending than ever before.
//
// How: a hierarchy of timing wheels. A slot of level 0 is a nanosecond wide; a slot of a higher
// level is as wide as the whole wheel below it. The levels reach to the end of time, so there is no
// horizon and no width to choose. An event waits in the highest level in which its slot differs
// from that of now. When now reaches a slot of a higher level, its events are spread over the
// wheels below. Slots are first in, first out. A slot is spread before anything later can be pushed
// into the wheels below, so events of one instant keep the order of their pushes without sorting.
//
// Not thread safe: one run is one thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/contracts.h"
#include "base/time.h"

namespace leeway::sim {

struct Event {
  std::int64_t time_ns = 0;
  std::uint64_t sequence = 0;  // number of the push, from 0
  // number of the receiver; the queue does not read this or the members below
  std::uint32_t target = 0;
  std::uint32_t kind = 0;
  std::uint64_t argument = 0;
};
static_assert(sizeof(Event) == 32, "two events to a cache line");

class EventQueue {
 public:
  // Reserves memory for `expected` events. A queue has at most 2^32 - 1 events.
  explicit EventQueue(std::size_t expected = 0);

  // Adds an event. `time` must not be before now().
  void push(Instant time, std::uint32_t target, std::uint32_t kind, std::uint64_t argument);

  // Takes out the next event and advances now() to it. If none is pending, returns false and
  // changes nothing.
  bool pop(Event& event);

  // Like pop(), for a caller that follows a real clock. Takes out only events that are due by
  // `limit`, and never moves now() beyond it, so that events before the next one can still be
  // pushed.
  bool pop_until(Instant limit, Event& event);

  // Returns a lower bound of the next event's time, which is exact if few events are pending.
  // Returns Instant::infinite_future() if the queue is empty.
  Instant next_not_before() const;

  // Visits at most `count` of the next events, nearest first, so that a caller can fetch into the
  // cache what they will touch. The visits reach at most a few hundred nanoseconds ahead. Later
  // pushes may come before the visited events.
  template <typename Visitor>
  void look_ahead(int count, Visitor&& visit) const;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The time of the event popped last; 0 before the first.
  Instant now() const { return {static_cast<std::int64_t>(now_ns_)}; }

 private:
  // A time is read as digits of kDigitBits bits, one for each level. The value was chosen by
  // measurement with tests/perf/sim_engine_bench.
  static constexpr int kDigitBits = 8;
  static constexpr std::size_t kSlots = std::size_t{1} << kDigitBits;
  static constexpr std::size_t kLevels = (63 + kDigitBits - 1) / kDigitBits;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // A list through next_, first in, first out. `last` has no meaning while the list is empty.
  struct List {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  struct Level {
    std::array<List, kSlots> slots;
    std::array<std::uint64_t, kSlots / 64> occupied{};
  };

  std::uint32_t take_free_index();
  void append(List& list, std::uint32_t index);
  void file(std::uint32_t index, std::uint64_t time_ns);
  void advance();
  bool advance_until(std::int64_t limit_ns);
  std::int64_t begin_of(std::size_t level_number, const List& list) const;
  std::int64_t first_of_short(const List& list) const;
  static std::size_t first_occupied(const Level& level) { return next_occupied(level, 0); }
  static std::size_t next_occupied(const Level& level, std::size_t from);
  List take_list(std::size_t level_number, std::size_t slot);
  void take_first_due(Event& event);
  void spread(const List& list);

  // Time of the event popped last. All events in the wheels are later. The time of an event in
  // level L has the same digits (of kDigitBits bits) as now_ns_ above digit L.
  std::uint64_t now_ns_ = 0;
  List due_;  // events of this very instant
  std::uint64_t next_sequence_ = 0;
  std::size_t size_ = 0;
  std::uint32_t levels_in_use_ = 0;  // bit L: level L holds events
  std::array<Level, kLevels> levels_;
  // The pending events, by index. The links of lists are apart, in next_, so that walking a list
  // touches few cache lines.
  std::vector<Event> events_;
  std::vector<std::uint32_t> next_;
  std::uint32_t free_ = kNone;  // list of unused indices; the one freed last is still in the cache
};

inline std::uint32_t EventQueue::take_free_index() {
  const std::uint32_t index = free_;
  if (index != kNone) [[likely]] {
    free_ = next_[index];
    return index;
  }
  LEEWAY_ASSERT(events_.size() < kNone);
  events_.emplace_back();
  next_.push_back(kNone);
  return static_cast<std::uint32_t>(events_.size() - 1);
}

inline void EventQueue::append(List& list, std::uint32_t index) {
  next_[index] = kNone;
  (list.first == kNone ? list.first : next_[list.last]) = index;
  list.last = index;
}

// Returns the first slot at or after `from` that holds events; kSlots if there is none.
inline std::size_t EventQueue::next_occupied(const Level& level, std::size_t from) {
  if (from >= kSlots) return kSlots;
  std::size_t word = from / 64;
  std::uint64_t bits = level.occupied[word] >> from % 64 << from % 64;
  while (bits == 0) {
    if (++word == level.occupied.size()) return kSlots;
    bits = level.occupied[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

// Puts an event that is later than now() into its slot.
inline void EventQueue::file(std::uint32_t index, std::uint64_t time_ns) {
  const int highest_differing_bit = std::bit_width(time_ns ^ now_ns_) - 1;
  const auto level_number = static_cast<std::size_t>(highest_differing_bit) / kDigitBits;
  const std::size_t slot = (time_ns >> level_number * kDigitBits) % kSlots;
  Level& level = levels_[level_number];
  append(level.slots[slot], index);
  level.occupied[slot / 64] |= std::uint64_t{1} << slot % 64;
  levels_in_use_ |= 1u << level_number;
}

inline void EventQueue::push(Instant time, std::uint32_t target, std::uint32_t kind,
                             std::uint64_t argument) {
  LEEWAY_ASSERT(time >= now());
  const std::uint32_t index = take_free_index();
  events_[index] = {time.ns, next_sequence_++, target, kind, argument};
  ++size_;
  const auto time_ns = static_cast<std::uint64_t>(time.ns);
  if (time_ns == now_ns_) {
    append(due_, index);
  } else {
    file(index, time_ns);
  }
}

inline bool EventQueue::pop(Event& event) {
  if (size_ == 0) return false;
  if (due_.first == kNone) advance();
  take_first_due(event);
  return true;
}

inline bool EventQueue::pop_until(Instant limit, Event& event) {
  if (size_ == 0 || now() > limit) return false;
  if (due_.first == kNone && !advance_until(limit.ns)) return false;
  take_first_due(event);
  return true;
}

inline void EventQueue::take_first_due(Event& event) {
  --size_;
  const std::uint32_t index = due_.first;
  event = events_[index];
  due_.first = next_[index];
  next_[index] = free_;
  free_ = index;
}

template <typename Visitor>
void EventQueue::look_ahead(int count, Visitor&& visit) const {
  std::uint32_t index = due_.first;
  std::size_t slot = now_ns_ % kSlots;
  for (int ahead = 0; ahead < count; ++ahead, index = next_[index]) {
    while (index == kNone) {
      slot = next_occupied(levels_[0], slot + 1);
      if (slot == kSlots) return;
      index = levels_[0].slots[slot].first;
    }
    visit(ahead, events_[index]);
  }
}

}  // namespace leeway::sim
