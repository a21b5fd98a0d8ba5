// The slow part of EventQueue. It runs when no event of the present instant is left.
#include "engine/event_queue.h"

#include <algorithm>

namespace leeway::sim {
namespace {

// In a slot of at most kShortList events the first event is searched directly. So a single timer
// far ahead is reached in one step instead of one step per level.
constexpr int kShortList = 4;

}  // namespace

EventQueue::EventQueue(std::size_t expected) {
  events_.reserve(expected);
  next_.reserve(expected);
}

// Moves now() to the next event. A time is read as digits, one for each level. The time of an event
// in level L agrees with now() above digit L, so the earliest events are in the lowest level that
// has any.
void EventQueue::advance() {
  advance_until(INT64_MAX);
}

// Like advance(), but leaves slots that begin after `limit_ns` as they are. Returns false if no
// event is due by then.
bool EventQueue::advance_until(std::int64_t limit_ns) {
  while (due_.first == kNone) {
    const auto level = static_cast<std::size_t>(std::countr_zero(levels_in_use_));
    const std::size_t slot = first_occupied(levels_[level]);
    const std::int64_t begin_ns = begin_of(level, levels_[level].slots[slot]);
    if (begin_ns > limit_ns) return false;
    const List list = take_list(level, slot);
    now_ns_ = static_cast<std::uint64_t>(begin_ns);
    if (level == 0) {
      due_ = list;
    } else {
      spread(list);
    }
  }
  return true;
}

Instant EventQueue::next_not_before() const {
  if (size_ == 0) return Instant::infinite_future();
  if (due_.first != kNone) return now();
  const auto level = static_cast<std::size_t>(std::countr_zero(levels_in_use_));
  return {begin_of(level, levels_[level].slots[first_occupied(levels_[level])])};
}

// Returns the time of a slot's first event if the slot has few events, else the time at which the
// slot starts.
std::int64_t EventQueue::begin_of(std::size_t level_number, const List& list) const {
  const std::int64_t time_ns = events_[list.first].time_ns;
  if (level_number == 0) return time_ns;
  const std::int64_t first_ns = first_of_short(list);
  if (first_ns != INT64_MAX) return first_ns;
  return time_ns >> level_number * kDigitBits << level_number * kDigitBits;
}

EventQueue::List EventQueue::take_list(std::size_t level_number, std::size_t slot) {
  Level& level = levels_[level_number];
  const List list = level.slots[slot];
  level.slots[slot] = {};
  level.occupied[slot / 64] &= ~(std::uint64_t{1} << slot % 64);
  std::uint64_t any = 0;
  for (const std::uint64_t word : level.occupied) any |= word;
  if (any == 0) levels_in_use_ &= ~(1u << level_number);
  return list;
}

// Moves the events of a slot that now() has reached into lower levels; events of this instant go to
// `due_`.
void EventQueue::spread(const List& list) {
  for (std::uint32_t index = list.first; index != kNone;) {
    const std::uint32_t next = next_[index];
    const auto time_ns = static_cast<std::uint64_t>(events_[index].time_ns);
    if (time_ns == now_ns_) {
      append(due_, index);
    } else {
      file(index, time_ns);
    }
    index = next;
  }
}

// Returns the time of a list's first event if the list is short, else INT64_MAX.
std::int64_t EventQueue::first_of_short(const List& list) const {
  std::int64_t first_ns = INT64_MAX;
  std::uint32_t index = list.first;
  for (int seen = 0; seen < kShortList && index != kNone; ++seen, index = next_[index]) {
    first_ns = std::min(first_ns, events_[index].time_ns);
  }
  return index == kNone ? first_ns : INT64_MAX;
}

}  // namespace leeway::sim
