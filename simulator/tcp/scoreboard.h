// The state of a sender's segments: which arrived, which are lost, and in which order they were
// last sent.
//
// A segment counts as in flight once, however often it was sent. Each segment and each change of
// its state costs constant time. An acknowledgement costs time only for the segments that it is the
// first to report.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/contracts.h"
#include "tcp/sliding_ring.h"
#include "tcp/tcp_ack.h"

namespace leeway::sim {

enum class SegmentState : std::uint8_t { flying, lost, arrived };

// What had been delivered when a segment was sent. Delivery rates are computed from it
// (draft-cheng-iccrg-delivery-rate-estimation).
struct SendContext {
  std::uint64_t delivered = 0;     // segments
  std::int64_t delivered_ns = 0;   // time at which their delivery was heard of
  std::int64_t first_sent_ns = 0;  // time at which the newest of them had been sent
  bool limited = false;            // the writer was the limit
};

struct SentSegment {
  std::int64_t sent_ns = 0;  // time of the latest sending
  std::uint64_t before = 0;  // neighbours in the order of sending; of flying ones only
  std::uint64_t after = 0;
  std::uint32_t bytes = 0;
  SegmentState state = SegmentState::flying;
  bool repeated = false;  // sent more than once
  SendContext context;    // context of the latest sending
};

class Scoreboard {
 public:
  static constexpr std::uint64_t kNone = UINT64_MAX;

  // Segments below first() are acknowledged in order. Segments from next() on were never sent.
  std::uint64_t first() const { return first_; }
  std::uint64_t next() const { return next_; }
  std::uint32_t outstanding() const { return static_cast<std::uint32_t>(next_ - first_); }
  std::uint32_t flying() const { return flying_; }
  std::uint32_t lost() const { return lost_; }
  // Number of segments that arrived beyond a hole.
  std::uint32_t sacked() const { return outstanding() - flying_ - lost_; }
  const SentSegment& operator[](std::uint64_t number) const { return segments_[number]; }

  // Notes that the next segment was sent for the first time. Returns its number.
  std::uint64_t send_new(std::int64_t now_ns, std::uint32_t bytes);
  // Notes that a segment was sent again. It then counts as flying, even if it was lost.
  void send_again(std::int64_t now_ns, std::uint64_t number);
  void note(std::uint64_t number, const SendContext& context) {
    segments_[number].context = context;
  }
  void mark_lost(std::uint64_t number);

  std::uint64_t lowest_lost();  // requires a lost one
  // oldest_flying() returns the flying segment that was sent first, and sent_after() the one that
  // was sent next after `number`. Both return kNone if there is none.
  std::uint64_t oldest_flying() const { return oldest_; }
  std::uint64_t sent_after(std::uint64_t number) const { return segments_[number].after; }

  // Calls on_arrival(number, segment) for every segment whose arrival is news.
  template <typename OnArrival>
  void acknowledge(const TcpAck& ack, OnArrival&& on_arrival);

 private:
  template <typename OnArrival>
  void arrive(std::uint64_t begin, std::uint64_t end, OnArrival& on_arrival);
  template <typename OnArrival>
  void arrive_news_of(SackBlock block, OnArrival& on_arrival);
  void append_flying(std::uint64_t number);
  void remove_flying(std::uint64_t number);

  SlidingRing<SentSegment> segments_;
  std::uint64_t first_ = 0;
  std::uint64_t next_ = 0;
  std::uint32_t flying_ = 0;
  std::uint32_t lost_ = 0;
  std::uint64_t oldest_ = kNone;
  std::uint64_t newest_ = kNone;
  std::uint64_t lost_from_ = kNone;   // no lost segment is below
  std::array<SackBlock, 3> known_{};  // blocks of the last acknowledgement: nothing new in them
};

template <typename OnArrival>
void Scoreboard::arrive(std::uint64_t begin, std::uint64_t end, OnArrival& on_arrival) {
  for (std::uint64_t number = begin; number < end; ++number) {
    SentSegment& segment = segments_[number];
    if (segment.state == SegmentState::arrived) continue;
    if (segment.state == SegmentState::flying) remove_flying(number);
    if (segment.state == SegmentState::lost) --lost_;
    segment.state = SegmentState::arrived;
    on_arrival(number, segment);
  }
}

// Visits the newly arrived segments of a block. Blocks mostly grow at one end, so the parts that
// the last acknowledgement already reported are skipped.
template <typename OnArrival>
void Scoreboard::arrive_news_of(SackBlock block, OnArrival& on_arrival) {
  for (const SackBlock& known : known_) {
    if (known.begin <= block.begin && block.begin < known.end) block.begin = known.end;
    if (known.begin < block.end && block.end <= known.end) block.end = known.begin;
    if (block.begin >= block.end) return;
  }
  for (const SackBlock& known : known_) {
    if (block.begin < known.begin && known.end < block.end) {
      arrive(block.begin, known.begin, on_arrival);
      block.begin = known.end;
    }
  }
  arrive(block.begin, block.end, on_arrival);
}

template <typename OnArrival>
void Scoreboard::acknowledge(const TcpAck& ack, OnArrival&& on_arrival) {
  LEEWAY_ASSERT(ack.next <= next_);
  arrive(first_, ack.next, on_arrival);
  first_ = std::max(first_, ack.next);
  std::array<SackBlock, 3> told{};
  for (std::size_t i = 0; i < told.size(); ++i) {
    const SackBlock block{std::max(ack.sacked[i].begin, first_), ack.sacked[i].end};
    if (block.begin >= block.end) continue;
    LEEWAY_ASSERT(block.end <= next_);
    arrive_news_of(block, on_arrival);
    told[i] = block;
  }
  known_ = told;
}

}  // namespace leeway::sim
