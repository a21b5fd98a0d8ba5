// The rarer half of EventQueue: what happens when the slot being served is used up.
#include "engine/event_queue.h"

#include <algorithm>

namespace leeway::sim {
namespace {

// A list of up to so many events is looked through for its first one before it is spread. Lone
// far-off timers then reach level 0 in one step instead of one step a level.
constexpr int kShortList = 4;

// Order of `late_`: std::push_heap keeps the greatest in front.
bool is_later(const Event& a, const Event& b) {
  return is_earlier(b, a);
}

}  // namespace

EventQueue::EventQueue(std::size_t expected) {
  for (Level& level : levels_) level.first.fill(kNone);
  events_.reserve(expected);
  next_.reserve(expected);
}

int EventQueue::first_occupied(const Level& level) {
  int base = 0;
  for (const std::uint64_t word : level.occupied) {
    if (word != 0) return base + std::countr_zero(word);
    base += 64;
  }
  LEEWAY_ASSERT(!"a level in use has an occupied slot");
  return 0;
}

std::uint32_t EventQueue::take_list(int level_number, int slot) {
  Level& level = levels_[static_cast<std::size_t>(level_number)];
  const auto at = static_cast<std::size_t>(slot);
  const std::uint32_t list = level.first[at];
  level.first[at] = kNone;
  level.occupied[at / 64] &= ~(std::uint64_t{1} << at % 64);
  std::uint64_t any = 0;
  for (const std::uint64_t word : level.occupied) any |= word;
  if (any == 0) levels_in_use_ &= ~(1u << level_number);
  return list;
}

void EventQueue::push_late(const Event& event) {
  late_.push_back(event);
  std::push_heap(late_.begin(), late_.end(), is_later);
}

void EventQueue::pop_late(Event& event) {
  std::pop_heap(late_.begin(), late_.end(), is_later);
  event = late_.back();
  late_.pop_back();
}

// Moves the present to the next slot of level 0 that holds events, and these to `due_`. The lowest
// level in use has the earliest events, because all digits above it are those of the present.
void EventQueue::reach_next_slot() {
  while (due_.empty()) {
    const int level = std::countr_zero(levels_in_use_);
    const int slot = first_occupied(levels_[static_cast<std::size_t>(level)]);
    const int shift = level_shift(level);
    const std::uint64_t digits_above = ~std::uint64_t{0} << (kSlotBits - 1) << shift << 1;
    present_ns_ = (present_ns_ & digits_above) | static_cast<std::uint64_t>(slot) << shift;
    spread(take_list(level, slot));
  }
  if (due_.size() > 1) std::sort(due_.begin(), due_.end(), is_later);
  present_end_ns_ = present_ns_ + (std::uint64_t{1} << kSlotWidthBits);
}

// Hangs the events of a reached slot into the levels below, those of the present slot into `due_`.
void EventQueue::spread(std::uint32_t list) {
  look_for_first(list);
  for (std::uint32_t index = list; index != kNone;) {
    const std::uint32_t next = next_[index];
    const auto time_ns = static_cast<std::uint64_t>(events_[index].time_ns);
    if ((time_ns ^ present_ns_) >> kSlotWidthBits == 0) {
      make_due(index);
    } else {
      file(index, time_ns);
    }
    index = next;
  }
}

// Advances the present to the first event of a list, if that is short.
void EventQueue::look_for_first(std::uint32_t list) {
  std::int64_t first_ns = INT64_MAX;
  std::uint32_t index = list;
  for (int seen = 0; seen < kShortList && index != kNone; ++seen, index = next_[index]) {
    first_ns = std::min(first_ns, events_[index].time_ns);
  }
  if (index != kNone) return;
  present_ns_ = static_cast<std::uint64_t>(first_ns) >> kSlotWidthBits << kSlotWidthBits;
}

// Moves an event out of the wheels and gives its place back.
void EventQueue::make_due(std::uint32_t index) {
  due_.push_back(events_[index]);
  next_[index] = free_;
  free_ = index;
}

}  // namespace leeway::sim
