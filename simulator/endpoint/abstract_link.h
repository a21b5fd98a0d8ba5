// What one rank knows about another: 128 bytes, of which a thousand ranks need a million.
//
// The receiving side is one cache line, the sending side another. Short times are ticks of 256 ns
// that wrap after 18 minutes; round trips are counted in 8 ns, up to 34 s.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/limits.h"
#include "base/time.h"
#include "endpoint/abstract_plan.h"
#include "endpoint/abstract_word.h"

namespace leeway::sim {

// A point in time for timers: 0 is none. Rounded up, so that a timer is never early.
class AbstractTick {
 public:
  AbstractTick() = default;
  static AbstractTick at(Instant time) {
    return AbstractTick(static_cast<std::uint32_t>((time.ns + kNs - 1) / kNs));
  }
  static AbstractTick now(Instant time) {
    return AbstractTick(static_cast<std::uint32_t>(time.ns / kNs));
  }
  // The first instant of this tick that is not before `now`.
  Instant instant(Instant now) const {
    const std::int64_t base = now.ns / kNs;
    const auto ahead = static_cast<std::int32_t>(value_ - static_cast<std::uint32_t>(base));
    return {std::max((base + ahead) * kNs, now.ns)};
  }
  bool set() const { return value_ != 0; }
  void clear() { value_ = 0; }
  bool due(AbstractTick now) const {
    return set() && static_cast<std::int32_t>(now.value_ - value_) >= 0;
  }
  bool before(AbstractTick other) const {
    return static_cast<std::int32_t>(value_ - other.value_) < 0;
  }
  friend bool operator==(AbstractTick, AbstractTick) = default;

 private:
  static constexpr std::int64_t kNs = 256;
  explicit AbstractTick(std::uint32_t value) : value_(std::max<std::uint32_t>(value, 1)) {}
  std::uint32_t value_ = 0;
};

// protocol::SendFlow in 12 bytes.
struct AbstractSendFlow {
  std::uint32_t position = 0;  // packets handed out; once the first pass is over: scan of a repair
  AbstractTick end_at;         // repeat the END unless settled by then
  std::uint8_t pass = 0;
  std::uint8_t end_tries = 0;
  bool settled = true;  // nothing to send, or the receiver wants no more
  bool end_due : 1 = false;
  bool pass_over : 1 = false;

  bool first_pass() const { return pass == 0; }
};

// protocol::ReceiveFlow in 16 bytes; which packets arrived is in the rank's ledger.
struct AbstractReceiveFlow {
  std::int64_t last_ns = 0;  // of the last arrival, or of the last asking if that was later
  std::uint32_t arrived = 0;
  std::uint8_t ended_pass = 0;
  std::uint8_t requested_pass = 0;
  std::uint8_t tries = 0;
  bool ended : 1 = false;      // ended_pass is known to be over
  bool finished : 1 = true;    // nothing to receive, complete, or given up
  bool abandoned : 1 = false;  // the sender has left the call
  bool request_due : 1 = false;

  bool ended_at_least(std::uint8_t pass) const {
    return ended && static_cast<std::int8_t>(ended_pass - pass) >= 0;
  }
};

struct alignas(128) AbstractLink {
  // Receiving.
  std::int64_t last_arrival_ns = 0;
  std::uint32_t largest_seen = 0;
  std::uint32_t gap_ns = 0;  // mean between consecutive arrivals
  std::uint16_t received = 0;
  std::uint16_t unreported = 0;
  AbstractTick report_at;
  AbstractTick wake_at;      // when the link's event is due; others of it are void
  std::uint16_t passed = 0;  // chunks of our shard that lie behind this sender
  std::uint8_t early = 0;    // packets kept for calls that are not open here yet
  std::uint8_t unreported_settles = 0;
  AbstractReceiveFlow receive[kHalves];

  // Sending.
  std::uint32_t next_sequence = 1;
  std::uint32_t acknowledged = 0;
  std::uint32_t sample_sequence = 0;  // the datagram whose round trip is being measured; 0: none
  std::uint32_t sample_at = 0;        // in 8 ns
  std::uint32_t rtt = 0;              // smoothed, in 8 ns
  std::uint32_t rtt_variation = 0;
  AbstractTick probe_at;
  std::uint32_t peer_opened = 0;
  std::uint16_t received_by_peer = 0;
  std::uint16_t delivered = kAllDelivered;  // smoothed share of our datagrams that arrived
  std::uint8_t probe_tries = 0;
  bool rtt_measured : 1 = false;
  bool gap_paused : 1 = true;
  bool control_queued : 1 = false;
  bool data_queued : 1 = false;
  bool report_due : 1 = false;
  bool probe_due : 1 = false;
  std::uint16_t lingering = 0;  // flows of earlier calls that this peer has not confirmed
  AbstractSendFlow send[kHalves];

  static constexpr std::uint16_t kAllDelivered = UINT16_MAX;
  static constexpr std::int64_t kRttUnitNs = 8;

  void set_round_trip(std::int64_t initial_ns) {
    rtt = units(initial_ns);
    rtt_variation = rtt / 2;
  }
  std::int64_t round_trip_ns() const { return rtt * kRttUnitNs; }
  // protocol::RoundTrip::timeout, and never longer than ticks can tell.
  std::int64_t timeout_ns(std::uint32_t tries) const {
    constexpr std::int64_t kLongest = 300'000'000'000;
    const std::int64_t base =
        round_trip_ns() + std::max<std::int64_t>(4 * kRttUnitNs * rtt_variation, limits::kTickNs);
    return std::min({base << std::min<std::uint32_t>(tries, 6),
                     std::max(2 * base, limits::kBackOffNs), kLongest});
  }

  std::uint32_t in_flight() const { return next_sequence - 1 - acknowledged; }
  std::uint32_t take_sequence(Instant now, std::uint32_t report_every) {
    if (sample_sequence == 0 && (next_sequence - acknowledged) % report_every == 0) {
      sample_sequence = next_sequence;
      sample_at = time_in_units(now);
    }
    return next_sequence++;
  }
  void on_arrival(Instant now, std::uint32_t sequence);
  void on_report(Instant now, const AbstractWord::Report& report, std::uint32_t window);

  // Control datagrams are worth copies where more than one datagram in a hundred is lost.
  bool lossy() const { return delivered < kAllDelivered - kAllDelivered / 100; }

 private:
  static std::uint32_t units(std::int64_t ns) {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ns / kRttUnitNs, 1, UINT32_MAX / 2));
  }
  static std::uint32_t time_in_units(Instant now) {
    return static_cast<std::uint32_t>(now.ns / kRttUnitNs);
  }
  void measure(std::uint32_t sample);
};
static_assert(sizeof(AbstractLink) == 128);

inline void AbstractLink::on_arrival(Instant now, std::uint32_t sequence) {
  ++received;
  ++unreported;
  const std::uint32_t full = nearest_count(sequence, largest_seen, kSequenceBits);
  if (later(full, largest_seen)) largest_seen = full;
  if (!gap_paused) {
    const std::int64_t gap = std::min<std::int64_t>(now.ns - last_arrival_ns, INT32_MAX);
    gap_ns += static_cast<std::uint32_t>((gap - gap_ns) / 16);
  }
  gap_paused = false;
  last_arrival_ns = now.ns;
}

inline void AbstractLink::measure(std::uint32_t sample) {
  const std::int64_t taken = std::max<std::uint32_t>(sample, 1);
  if (!rtt_measured) {
    rtt_measured = true;
    rtt = static_cast<std::uint32_t>(taken);
    rtt_variation = rtt / 2;
    return;
  }
  const std::int64_t off = taken > rtt ? taken - rtt : rtt - taken;
  rtt_variation = static_cast<std::uint32_t>(rtt_variation + (off - rtt_variation) / 4);
  rtt = static_cast<std::uint32_t>(rtt + (taken - rtt) / 8);
}

inline void AbstractLink::on_report(Instant now, const AbstractWord::Report& report,
                                    std::uint32_t window) {
  const std::uint32_t largest = nearest_count(report.largest_sequence, acknowledged, kSequenceBits);
  if (!later(largest, acknowledged)) return;  // nothing new
  const std::uint32_t covered = largest - acknowledged;
  const std::uint32_t arrived = std::min<std::uint32_t>(
      static_cast<std::uint16_t>(report.received - received_by_peer), covered);
  const std::int64_t more =
      std::int64_t{arrived} * kAllDelivered - std::int64_t{covered} * delivered;
  delivered = static_cast<std::uint16_t>(delivered + more / std::int64_t{covered + window});
  acknowledged = largest;
  received_by_peer = static_cast<std::uint16_t>(report.received);
  if (sample_sequence != 0 && !later(sample_sequence, largest)) {
    if (sample_sequence == largest && report.prompt) measure(time_in_units(now) - sample_at);
    sample_sequence = 0;
  }
  probe_tries = 0;
  probe_at.clear();
}

}  // namespace leeway::sim
