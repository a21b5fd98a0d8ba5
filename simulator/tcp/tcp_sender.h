// The sending half of a TCP connection: decides from acknowledgements and time which segment to
// send when.
//
// A pure state machine. It finds losses by RACK and tail loss probes (RFC 8985), and by the
// retransmission timeout if nothing comes back (RFC 6298). The window is CUBIC's or BBR's.
// README.md lists what is left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "tcp/bbr.h"
#include "tcp/cubic.h"
#include "tcp/proportional_reduction.h"
#include "tcp/recent_acknowledgement.h"
#include "tcp/rtt_estimator.h"
#include "tcp/scoreboard.h"
#include "tcp/tcp_ack.h"
#include "tcp/tcp_options.h"

namespace leeway::sim {

struct TcpSegment {
  std::uint64_t number = 0;
  std::uint32_t bytes = 0;
  bool repeated = false;
  bool reduced = false;  // the answer to an echo of a mark (CWR)
};

struct TcpSenderCounters {
  std::uint64_t segments = 0;  // sent, repeated ones included
  std::uint64_t repeated = 0;
  std::uint64_t reductions = 0;  // reductions of the window, timeouts apart
  std::uint64_t timeouts = 0;
  std::uint64_t probes = 0;
};

class TcpSender {
 public:
  explicit TcpSender(const TcpOptions& options);

  // Adds bytes to be sent.
  void write(std::uint64_t bytes) { unsent_bytes_ += bytes; }

  void on_ack(Instant now, const TcpAck& ack);
  // Call it at next_wake(). Earlier calls do nothing.
  void on_timer(Instant now);
  // Returns the segment to send now, or none. Call it until it returns none.
  std::optional<TcpSegment> poll(Instant now);
  // Call it instead of poll() if the rank's own link is full. The sender then does not count as
  // limited by its window.
  void hold() { note_use(false); }
  Instant next_wake() const {
    return {std::min(timer_ == Timer::none ? kNeverNs : timer_ns_, paced_ ? free_ns_ : kNeverNs)};
  }

  std::uint32_t window() const { return bbr_ ? bbr_->window() : cubic_.window(); }
  std::uint32_t outstanding() const { return board_.outstanding(); }
  const RttEstimator& rtt() const { return rtt_; }
  const TcpSenderCounters& counters() const { return counters_; }

 private:
  enum class State : std::uint8_t {
    open,
    reducing,    // because of marks
    recovering,  // losses found by acknowledgements
    timed_out
  };
  enum class Timer : std::uint8_t { none, timeout, probe, reordering };
  static constexpr std::int64_t kNeverNs = Instant::infinite_future().ns;
  static constexpr std::uint64_t kNoPoint = UINT64_MAX;
  // Time added to a probe's timer, because the receiver's timers may be late.
  static constexpr std::int64_t kProbeSlackNs = 2'000'000;

  struct Arrivals {
    std::uint32_t count = 0;
    bool repeated = false;        // one of them at least
    std::int64_t longest_ns = 0;  // since they were sent
    std::int64_t shortest_ns = INT64_MAX;
    SendContext newest;  // context of the segment that was sent last
    std::int64_t newest_sent_ns = -1;
  };

  Arrivals take_in(Instant now, const TcpAck& ack);
  void take_rate(Instant now, const Arrivals& arrivals);
  void note_context(Instant now, std::uint64_t number, std::uint32_t bytes);
  void settle_probe(const TcpAck& ack, bool news);
  // Marks lost segments. Returns the time at which to call it again, if any.
  std::optional<std::int64_t> find_losses(Instant now, std::uint32_t arrived, bool advanced);
  void begin_reduction(State state);
  void end_reduction();
  void on_timeout(Instant now);
  void on_probe_timer(Instant now);

  TcpSegment send_new(Instant now);
  TcpSegment send_again(Instant now, std::uint64_t number);
  void note_use(bool held_back);
  bool window_is_used() const;
  bool probe_is_useful() const;
  void arm(Timer timer, std::int64_t at_ns);
  void arm_timeout(Instant now);
  void arm_probe_or_timeout(Instant now);

  TcpOptions options_;
  Cubic cubic_;
  std::optional<Bbr> bbr_;  // replaces cubic_ if set
  RttEstimator rtt_;
  Scoreboard board_;
  RecentAcknowledgement rack_;
  ProportionalReduction reduction_;
  State state_ = State::open;
  std::uint64_t recovery_point_ = 0;  // the state ends when all before this arrived
  std::uint64_t unsent_bytes_ = 0;
  std::int64_t sent_ns_ = -1;  // when the latest of all segments was sent

  // For BBR: what was delivered, and when the next segment may leave.
  std::uint64_t delivered_ = 0;
  std::int64_t delivered_ns_ = 0;
  std::int64_t first_sent_ns_ = 0;
  std::uint64_t limited_until_ = 0;
  std::int64_t free_ns_ = 0;
  bool paced_ = false;  // a segment waits for free_ns_

  Timer timer_ = Timer::none;
  std::int64_t timer_ns_ = 0;

  std::uint64_t probe_point_ = kNoPoint;  // next() when an unanswered probe was sent
  bool probe_repeats_ = false;            // that probe repeated a segment
  bool probe_due_ = false;
  bool reduced_due_ = false;  // CWR on the next new segment

  // True if the window, and not the writer, has limited the sender since use_point_.
  // window_is_used() decides by this whether the window may grow (RFC 7661, as in Linux).
  bool held_back_ = false;
  std::uint32_t used_ = 0;
  std::uint64_t use_point_ = 0;

  TcpSenderCounters counters_;
};

}  // namespace leeway::sim
