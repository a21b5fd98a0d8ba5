// The rarer half of EventQueue: what happens when no event of this instant is left.
#include "engine/event_queue.h"

#include <algorithm>

namespace leeway::sim {
namespace {

// A list of up to so many events is looked through for its first one before it is spread. Lone
// far-off timers then become due in one step instead of one step a level.
constexpr int kShortList = 4;

}  // namespace

EventQueue::EventQueue(std::size_t expected) {
  events_.reserve(expected);
  next_.reserve(expected);
}

// Moves now() to the next event. The lowest level in use has the earliest ones, because all digits
// above it are those of now. Digits below the slot's are cleared, which puts now at its start.
void EventQueue::advance() {
  while (due_.first == kNone) {
    const auto level = static_cast<std::size_t>(std::countr_zero(levels_in_use_));
    const List list = take_list(level, first_occupied(levels_[level]));
    const auto time_ns = static_cast<std::uint64_t>(events_[list.first].time_ns);
    now_ns_ = time_ns >> level * kDigitBits << level * kDigitBits;
    if (level == 0) {
      due_ = list;
    } else {
      spread(list);
    }
  }
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

// Hangs the events of a reached slot into the levels below, those of this instant into `due_`.
void EventQueue::spread(const List& list) {
  look_for_first(list);
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

// Moves now() to the first event of a list, if that is short.
void EventQueue::look_for_first(const List& list) {
  std::int64_t first_ns = INT64_MAX;
  std::uint32_t index = list.first;
  for (int seen = 0; seen < kShortList && index != kNone; ++seen, index = next_[index]) {
    first_ns = std::min(first_ns, events_[index].time_ns);
  }
  if (index == kNone) now_ns_ = static_cast<std::uint64_t>(first_ns);
}

}  // namespace leeway::sim
