// The simulator's list of things to come: events leave in ascending (time, sequence).
//
// Promises:
//   - Total order. Ties in time leave in the order they were pushed, so a run depends on nothing
//     but its input: not on the addresses of objects nor on the tuning of this queue.
//   - push and pop cost O(1) amortised for any spread of times (an event moves at most once a
//     level), O(log n) among events that are due in the same slot.
//   - Nothing is allocated in a steady state: memory grows only when more events are pending, or
//     are due in one slot, than ever before.
//
// How: a hierarchy of timing wheels. Level 0 has slots of 2^kSlotWidthBits nanoseconds, and each
// further level has slots as wide as the whole wheel below it, up to the end of time, so there is
// no horizon and no width to choose for a scenario. An event waits in the coarsest slot that
// separates it from the present. A reached slot of a higher level is spread over the wheels below;
// one of level 0 is sorted into `due_`. What is pushed into the slot that is being served goes to
// `late_`, a heap.
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
  std::uint64_t sequence = 0;  // the how-manieth push, from 0
  std::uint32_t target = 0;    // whom it concerns; the queue does not look at this and what follows
  std::uint32_t kind = 0;
  std::uint64_t argument = 0;
};
static_assert(sizeof(Event) == 32, "two events to a cache line");

constexpr bool is_earlier(const Event& a, const Event& b) {
  return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.sequence < b.sequence;
}

class EventQueue {
 public:
  // Room for so many pending events without allocation. A queue holds at most 2^32 - 1.
  explicit EventQueue(std::size_t expected = 0);

  // Adds an event. `time` is not before now(): the past cannot be changed.
  void push(Instant time, std::uint32_t target, std::uint32_t kind, std::uint64_t argument);

  // Takes out the next event and advances now() to it. False, with everything unchanged, if none
  // is pending.
  bool pop(Event& event);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The time of the event popped last; 0 before the first.
  Instant now() const { return {now_ns_}; }

 private:
  // Measured with tests/perf/sim_engine_bench: see README.md.
  static constexpr int kSlotWidthBits = 5;
  static constexpr int kSlotBits = 8;
  static constexpr int kSlots = 1 << kSlotBits;
  static constexpr int kLevels = (63 - kSlotWidthBits + kSlotBits - 1) / kSlotBits;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Level {
    std::array<std::uint32_t, kSlots> first;  // heads of lists through next_
    std::array<std::uint64_t, kSlots / 64> occupied{};
  };

  // A time's bits above the width of level 0 are read as digits of kSlotBits, one a level.
  static int level_shift(int level) { return kSlotWidthBits + level * kSlotBits; }
  static int first_occupied(const Level& level);
  void file(std::uint32_t index, std::uint64_t time_ns);
  std::uint32_t take_list(int level, int slot);
  std::uint32_t take_free_index();
  void push_late(const Event& event);
  void pop_late(Event& event);
  void reach_next_slot();
  void make_due(std::uint32_t index);
  void spread(std::uint32_t list);
  void look_for_first(std::uint32_t list);

  std::int64_t now_ns_ = 0;
  // The slot of level 0 being served. Every event of the wheels is in a later one, and an event of
  // level L agrees with this time in all digits above L. Unsigned: the last slot ends at 2^63.
  std::uint64_t present_ns_ = 0;
  std::uint64_t present_end_ns_ = std::uint64_t{1} << kSlotWidthBits;
  std::uint64_t next_sequence_ = 0;
  std::size_t size_ = 0;

  std::vector<Event> due_;   // descending, so that the next one is at the back
  std::vector<Event> late_;  // heap, the next one in front
  std::uint32_t levels_in_use_ = 0;
  std::array<Level, kLevels> levels_;
  // Events in the wheels, by index. Links are apart from them: following a list then touches few
  // cache lines, and the loads of its events overlap.
  std::vector<Event> events_;
  std::vector<std::uint32_t> next_;
  std::uint32_t free_ = kNone;
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

// Hangs an event of a later slot into the wheels.
inline void EventQueue::file(std::uint32_t index, std::uint64_t time_ns) {
  const std::uint64_t differing = (time_ns ^ present_ns_) >> kSlotWidthBits;
  const int level_number = (std::bit_width(differing) - 1) / kSlotBits;
  const std::size_t slot = (time_ns >> level_shift(level_number)) % kSlots;
  Level& level = levels_[static_cast<std::size_t>(level_number)];
  next_[index] = level.first[slot];
  level.first[slot] = index;
  level.occupied[slot / 64] |= std::uint64_t{1} << slot % 64;
  levels_in_use_ |= 1u << level_number;
}

inline void EventQueue::push(Instant time, std::uint32_t target, std::uint32_t kind,
                             std::uint64_t argument) {
  LEEWAY_ASSERT(time.ns >= now_ns_);
  const Event event{time.ns, next_sequence_++, target, kind, argument};
  ++size_;
  const auto time_ns = static_cast<std::uint64_t>(time.ns);
  if (time_ns < present_end_ns_) {
    push_late(event);
    return;
  }
  const std::uint32_t index = take_free_index();
  events_[index] = event;
  file(index, time_ns);
}

inline bool EventQueue::pop(Event& event) {
  if (size_ == 0) return false;
  if (due_.empty() && late_.empty()) reach_next_slot();
  --size_;
  if (late_.empty() || (!due_.empty() && is_earlier(due_.back(), late_.front()))) [[likely]] {
    event = due_.back();
    due_.pop_back();
  } else {
    pop_late(event);
  }
  now_ns_ = event.time_ns;
  return true;
}

}  // namespace leeway::sim
