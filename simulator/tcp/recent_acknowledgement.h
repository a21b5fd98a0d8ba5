// RACK (RFC 8985 section 6): a segment counts as lost if another one that was sent sufficiently
// later has arrived.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "tcp/rtt_estimator.h"
#include "tcp/scoreboard.h"

namespace leeway::sim {

class RecentAcknowledgement {
 public:
  void on_arrival(std::int64_t now_ns, std::uint64_t number, const SentSegment& segment,
                  const RttEstimator& rtt) {
    if (!segment.repeated && any_ && number < highest_) reordering_ = true;
    const std::int64_t took_ns = now_ns - segment.sent_ns;
    // An acknowledgement that comes sooner after the repeat than the shortest round trip must be
    // for an earlier copy.
    if (segment.repeated && took_ns < rtt.least_ns()) return;
    highest_ = any_ ? std::max(highest_, number) : number;
    any_ = true;
    if (segment.sent_ns < sent_ns_ || (segment.sent_ns == sent_ns_ && number < number_)) return;
    sent_ns_ = segment.sent_ns;
    number_ = number;
    took_ns_ = took_ns;
  }

  // Call it when a segment arrived twice. The sender had repeated it too early, so the reordering
  // window grows.
  void on_duplicate() { steps_ = std::min(steps_ + 1, kStepsMax); }

  // Marks lost segments. Returns the time at which to call it again, if some segments are late but
  // may still have been overtaken.
  std::optional<std::int64_t> detect(std::int64_t now_ns, bool recovering, const RttEstimator& rtt,
                                     Scoreboard& board) const {
    if (!any_) return std::nullopt;
    const std::int64_t window_ns = reordering_window_ns(recovering, rtt, board);
    std::uint64_t number = board.oldest_flying();
    while (number != Scoreboard::kNone && sent_before_latest(board[number].sent_ns, number)) {
      const std::int64_t late_ns = board[number].sent_ns + took_ns_ + window_ns;
      if (late_ns > now_ns) return late_ns;
      const std::uint64_t next = board.sent_after(number);
      board.mark_lost(number);
      number = next;
    }
    return std::nullopt;
  }

  // Returns true if a retransmission timeout should count the segment as lost, because it has been
  // in flight for too long.
  bool overdue(std::int64_t now_ns, const SentSegment& segment, const RttEstimator& rtt) const {
    const std::int64_t window_ns =
        any_ ? std::min(rtt.least_ns() / 4 * steps_, rtt.smoothed_ns()) : 0;
    return !any_ || segment.sent_ns + took_ns_ + window_ns <= now_ns;
  }

 private:
  static constexpr std::int64_t kStepsMax = 255;
  static constexpr std::uint32_t kDuplicatesEnough = 3;  // as RFC 5681 has it

  bool sent_before_latest(std::int64_t sent_ns, std::uint64_t number) const {
    return sent_ns < sent_ns_ || (sent_ns == sent_ns_ && number < number_);
  }

  std::int64_t reordering_window_ns(bool recovering, const RttEstimator& rtt,
                                    const Scoreboard& board) const {
    if (!reordering_ && (recovering || board.sacked() >= kDuplicatesEnough)) return 0;
    return std::min(rtt.least_ns() / 4 * steps_, rtt.smoothed_ns());
  }

  bool any_ = false;
  bool reordering_ = false;
  std::int64_t steps_ = 1;
  std::uint64_t highest_ = 0;  // largest number that arrived
  // The arrived segment that was sent last, and its round trip.
  std::int64_t sent_ns_ = INT64_MIN;
  std::uint64_t number_ = 0;
  std::int64_t took_ns_ = 0;
};

}  // namespace leeway::sim
