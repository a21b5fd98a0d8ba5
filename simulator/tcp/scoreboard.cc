#include "tcp/scoreboard.h"

namespace leeway::sim {

std::uint64_t Scoreboard::send_new(std::int64_t now_ns, std::uint32_t bytes) {
  const std::uint64_t number = next_++;
  segments_.make_room(first_, next_);
  segments_[number] = {.sent_ns = now_ns, .bytes = bytes};
  append_flying(number);
  return number;
}

void Scoreboard::send_again(std::int64_t now_ns, std::uint64_t number) {
  SentSegment& segment = segments_[number];
  LEEWAY_ASSERT(segment.state != SegmentState::arrived);
  if (segment.state == SegmentState::flying) remove_flying(number);
  if (segment.state == SegmentState::lost) --lost_;
  segment.state = SegmentState::flying;
  segment.sent_ns = now_ns;
  segment.repeated = true;
  append_flying(number);
}

void Scoreboard::mark_lost(std::uint64_t number) {
  SentSegment& segment = segments_[number];
  LEEWAY_ASSERT(segment.state == SegmentState::flying);
  remove_flying(number);
  segment.state = SegmentState::lost;
  ++lost_;
  lost_from_ = std::min(lost_from_, number);
}

std::uint64_t Scoreboard::lowest_lost() {
  LEEWAY_ASSERT(lost_ > 0);
  lost_from_ = std::max(lost_from_, first_);
  while (segments_[lost_from_].state != SegmentState::lost) ++lost_from_;
  return lost_from_;
}

void Scoreboard::append_flying(std::uint64_t number) {
  segments_[number].before = newest_;
  segments_[number].after = kNone;
  (newest_ == kNone ? oldest_ : segments_[newest_].after) = number;
  newest_ = number;
  ++flying_;
}

void Scoreboard::remove_flying(std::uint64_t number) {
  const SentSegment& segment = segments_[number];
  (segment.before == kNone ? oldest_ : segments_[segment.before].after) = segment.after;
  (segment.after == kNone ? newest_ : segments_[segment.after].before) = segment.before;
  --flying_;
}

}  // namespace leeway::sim
