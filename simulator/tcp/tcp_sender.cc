#include "tcp/tcp_sender.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::sim {

TcpSender::TcpSender(const TcpOptions& options)
    : options_(options), cubic_(options.initial_window), rtt_(options) {
  if (options.congestion == TcpCongestion::bbr)
    bbr_.emplace(options.initial_window, options.segment_bytes);
}

void TcpSender::on_ack(Instant now, const TcpAck& ack) {
  const std::uint64_t first_before = board_.first();
  const Arrivals arrivals = take_in(now, ack);
  const bool advanced = board_.first() > first_before;
  if (advanced) rtt_.on_progress();
  settle_probe(ack, arrivals.count > 0);
  if (state_ != State::open && board_.first() >= recovery_point_) end_reduction();
  if (ack.congestion && state_ == State::open && options_.ecn) {
    reduced_due_ = true;
    begin_reduction(State::reducing);
  }
  if (arrivals.count == 0) return;
  if (state_ != State::reducing && state_ != State::recovering && advanced && window_is_used()) {
    cubic_.on_ack(now.ns, arrivals.count, rtt_.smoothed_ns());
  }
  const auto look_again_ns = find_losses(now, arrivals.count, advanced);
  if (bbr_) take_rate(now, arrivals);
  arm_probe_or_timeout(now);
  if (look_again_ns) arm(Timer::reordering, *look_again_ns);
}

TcpSender::Arrivals TcpSender::take_in(Instant now, const TcpAck& ack) {
  Arrivals arrivals;
  board_.acknowledge(ack, [&](std::uint64_t number, const SentSegment& segment) {
    ++arrivals.count;
    rack_.on_arrival(now.ns, number, segment, rtt_);
    arrivals.repeated |= segment.repeated;
    const std::int64_t took_ns = now.ns - segment.sent_ns;
    arrivals.longest_ns = std::max(arrivals.longest_ns, took_ns);
    arrivals.shortest_ns = std::min(arrivals.shortest_ns, took_ns);
    if (segment.sent_ns >= arrivals.newest_sent_ns) {
      arrivals.newest_sent_ns = segment.sent_ns;
      arrivals.newest = segment.context;
    }
  });
  // If one of the newly acknowledged segments was sent twice, the others may have arrived long ago,
  // beyond a hole that its repeat filled. So no round trip is measured then.
  if (arrivals.count > 0 && !arrivals.repeated) {
    rtt_.sample(arrivals.longest_ns, arrivals.shortest_ns);
  }
  if (ack.duplicate) rack_.on_duplicate();
  return arrivals;
}

// Gives BBR a sample of the delivery rate. The sample spans the time since the newest of the
// acknowledged segments was sent, and the segments delivered in that time.
void TcpSender::take_rate(Instant now, const Arrivals& arrivals) {
  delivered_ += arrivals.count;
  delivered_ns_ = now.ns;
  first_sent_ns_ = arrivals.newest_sent_ns;
  const std::int64_t sending_ns = arrivals.newest_sent_ns - arrivals.newest.first_sent_ns;
  bbr_->on_ack({.now_ns = now.ns,
                .delivered = delivered_,
                .prior_delivered = arrivals.newest.delivered,
                .interval_ns = std::max(now.ns - arrivals.newest.delivered_ns, sending_ns),
                .rtt_ns = arrivals.repeated ? 0 : arrivals.shortest_ns,
                .arrived = arrivals.count,
                .flying = board_.flying(),
                .limited = arrivals.newest.limited});
}

// Notes with segment `number`, which leaves now, what has been delivered so far. Also computes when
// the next segment may leave.
void TcpSender::note_context(Instant now, std::uint64_t number, std::uint32_t bytes) {
  if (!bbr_) return;
  if (board_.flying() <= 1) delivered_ns_ = first_sent_ns_ = now.ns;
  board_.note(number, {delivered_, delivered_ns_, first_sent_ns_, delivered_ < limited_until_});
  free_ns_ = std::max(free_ns_, now.ns) + bbr_->gap_ns(bytes + options_.header_bytes);
}

// If a probe's repeated segment did not arrive twice, it repaired a loss that nothing else showed,
// so the window is reduced (RFC 8985 section 7.4).
void TcpSender::settle_probe(const TcpAck& ack, bool news) {
  if (probe_point_ == kNoPoint) return;
  if (probe_repeats_) {
    const bool twice = ack.duplicate || (!news && ack.next == probe_point_);
    const bool repaired = !twice && board_.first() > probe_point_;
    if (repaired && state_ == State::open) {
      begin_reduction(State::reducing);
      end_reduction();
    }
    if (twice || repaired) probe_point_ = kNoPoint;
  } else if (board_.first() >= probe_point_) {
    probe_point_ = kNoPoint;
  }
}

std::optional<std::int64_t> TcpSender::find_losses(Instant now, std::uint32_t arrived,
                                                   bool advanced) {
  const std::uint32_t lost_before = board_.lost();
  const bool recovering = state_ == State::recovering || state_ == State::timed_out;
  const auto look_again_ns = rack_.detect(now.ns, recovering, rtt_, board_);
  const bool found = board_.lost() > lost_before;
  if (found && !recovering) begin_reduction(State::recovering);
  if (state_ == State::recovering || state_ == State::reducing) {
    cubic_.set_window(reduction_.window(arrived, board_.flying(), advanced && !found));
  }
  return look_again_ns;
}

void TcpSender::begin_reduction(State state) {
  if (state_ == State::open) {
    const std::uint32_t before = cubic_.window();
    cubic_.on_congestion();
    reduction_.begin(before, cubic_.threshold());
    if (bbr_) bbr_->on_recovery(board_.flying());
    ++counters_.reductions;
  }
  state_ = state;
  recovery_point_ = board_.next();
}

void TcpSender::end_reduction() {
  if (state_ != State::timed_out) cubic_.set_window(cubic_.threshold());
  state_ = State::open;
  if (bbr_) bbr_->on_recovery_end();
}

void TcpSender::on_timer(Instant now) {
  if (timer_ == Timer::none || now.ns < timer_ns_) return;
  const Timer timer = timer_;
  timer_ = Timer::none;
  switch (timer) {
    case Timer::none:
      return;
    case Timer::timeout:
      return on_timeout(now);
    case Timer::probe:
      return on_probe_timer(now);
    case Timer::reordering:
      arm_timeout(now);
      if (const auto look_again_ns = find_losses(now, 1, false)) {
        arm(Timer::reordering, *look_again_ns);
      }
  }
}

void TcpSender::on_timeout(Instant now) {
  ++counters_.timeouts;
  if (state_ == State::open) cubic_.on_timeout();
  if (bbr_) bbr_->on_timeout();
  state_ = State::timed_out;
  recovery_point_ = board_.next();
  probe_point_ = kNoPoint;
  probe_due_ = false;
  const std::uint64_t head = board_.first();
  for (std::uint64_t number = board_.oldest_flying(); number != Scoreboard::kNone;) {
    const std::uint64_t next = board_.sent_after(number);
    if (number == head || rack_.overdue(now.ns, board_[number], rtt_)) board_.mark_lost(number);
    number = next;
  }
  cubic_.set_window(board_.flying() + 1);
  rtt_.on_timeout();
  arm_timeout(now);
}

void TcpSender::on_probe_timer(Instant now) {
  probe_due_ = true;
  probe_repeats_ = unsent_bytes_ == 0 || board_.outstanding() >= options_.receive_window;
  ++counters_.probes;
  arm_timeout(now);
}

std::optional<TcpSegment> TcpSender::poll(Instant now) {
  if (probe_due_) {
    probe_due_ = false;
    std::optional<TcpSegment> segment;
    if (!probe_repeats_) segment = send_new(now);
    const std::uint64_t last = board_.next() - 1;
    if (probe_repeats_ && board_[last].state == SegmentState::flying) {
      segment = send_again(now, last);
    }
    if (segment) {
      probe_point_ = board_.next();
      return segment;
    }
  }
  const bool repairs = board_.lost() > 0 && board_.flying() < window();
  paced_ = now.ns < free_ns_ && (repairs || unsent_bytes_ > 0) && board_.flying() < window();
  if (paced_) return std::nullopt;
  if (repairs) {
    const std::uint64_t number = board_.lowest_lost();
    if (number == board_.first()) arm_timeout(now);
    return send_again(now, number);
  }
  const bool held_back = unsent_bytes_ > 0 && board_.flying() >= window();
  if (unsent_bytes_ > 0 && !held_back && board_.outstanding() < options_.receive_window) {
    return send_new(now);
  }
  if (unsent_bytes_ == 0) {
    limited_until_ = delivered_ + std::max<std::uint64_t>(board_.flying(), 1);
  }
  note_use(held_back);
  return std::nullopt;
}

TcpSegment TcpSender::send_new(Instant now) {
  const bool first = board_.outstanding() == 0;
  if (first && sent_ns_ >= 0) {
    cubic_.on_idle(now.ns - sent_ns_, rtt_.timeout_ns(), options_.idle_restart);
  }
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(unsent_bytes_, options_.segment_bytes));
  unsent_bytes_ -= bytes;
  const std::uint64_t number = board_.send_new(now.ns, bytes);
  note_context(now, number, bytes);
  ++counters_.segments;
  sent_ns_ = now.ns;
  reduction_.on_sent();
  if (first || timer_ == Timer::probe) arm_probe_or_timeout(now);
  const bool reduced = reduced_due_;
  reduced_due_ = false;
  return {number, bytes, false, reduced};
}

TcpSegment TcpSender::send_again(Instant now, std::uint64_t number) {
  board_.send_again(now.ns, number);
  note_context(now, number, board_[number].bytes);
  ++counters_.segments;
  ++counters_.repeated;
  sent_ns_ = now.ns;
  reduction_.on_sent();
  return {number, board_[number].bytes, true, false};
}

void TcpSender::note_use(bool held_back) {
  const std::uint32_t outstanding = board_.outstanding();
  if (board_.first() >= use_point_ || held_back || (!held_back_ && outstanding > used_)) {
    held_back_ = held_back;
    used_ = outstanding;
    use_point_ = board_.next();
  }
}

bool TcpSender::window_is_used() const {
  return held_back_ || (cubic_.slow_start() && cubic_.window() < 2 * used_);
}

void TcpSender::arm(Timer timer, std::int64_t at_ns) {
  timer_ = timer;
  timer_ns_ = at_ns;
}

void TcpSender::arm_timeout(Instant now) {
  arm(board_.outstanding() > 0 ? Timer::timeout : Timer::none, now.ns + rtt_.timeout_ns());
}

bool TcpSender::probe_is_useful() const {
  return state_ == State::open && board_.outstanding() > 0 && board_.sacked() == 0 &&
         probe_point_ == kNoPoint && rtt_.known();
}

void TcpSender::arm_probe_or_timeout(Instant now) {
  if (!probe_is_useful()) return arm_timeout(now);
  // With one segment outstanding, the receiver may delay its acknowledgement.
  const std::int64_t slack_ns = board_.outstanding() == 1 ? options_.rto_min_ns : kProbeSlackNs;
  const std::int64_t probe_ns = 2 * rtt_.smoothed_ns() + slack_ns;
  arm(Timer::probe, now.ns + std::min(probe_ns, rtt_.timeout_ns()));
}

}  // namespace leeway::sim
