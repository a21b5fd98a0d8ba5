// What one rank knows about its path to one peer: numbering, credit, round-trip time, arrival
// rhythm.
//
// Credit: the sender counts every datagram of the link; the receiver reports the largest number it
// saw. What is numbered below that and not received is *written off*, not resent: repair is a
// matter of operations, not of links. In flight is whatever is numbered above. With at most a
// window in flight, the receiver's socket buffer cannot overflow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "leeway/types.h"
#include "protocol/group_path.h"
#include "protocol/missed_rounds.h"
#include "protocol/serial_number.h"

namespace leeway::protocol {

// Smoothed round-trip time after RFC 6298, in nanoseconds.
class RoundTrip {
 public:
  explicit RoundTrip(Duration initial = std::chrono::milliseconds(10))
      : smoothed_(initial.count()), variation_(initial.count() / 2) {}

  void on_sample(Duration sample);
  Duration smoothed() const { return Duration(smoothed_); }
  // How long silence must last before something is worth asking again. Doubled per unanswered try,
  // up to 64 times; beyond limits::kBackOffNs only once.
  Duration timeout(std::uint32_t tries = 0) const;
  bool measured() const { return samples_ > 0; }

 private:
  std::int64_t smoothed_;
  std::int64_t variation_;
  std::uint64_t samples_ = 0;
};

// Mean time between consecutive arrivals of a link while something was on its way.
class ArrivalGap {
 public:
  void on_arrival(Instant now);
  // Nothing was on its way before `since`: the first arrival after it starts a new series.
  void pause_until(Instant since) {
    if (last_ < since) last_.ns = 0;
  }
  Duration mean() const { return Duration(mean_ns_); }

 private:
  Instant last_{0};
  std::int64_t mean_ns_ = 0;
};

class Link {
 public:
  void configure(std::uint32_t window_datagrams, Duration initial_rtt);

  // Sending side.
  std::uint32_t take_sequence(Instant now);
  std::uint32_t last_sequence() const { return next_sequence_ - 1; }
  std::uint32_t in_flight() const { return next_sequence_ - 1 - acknowledged_; }
  std::uint32_t credit() const { return in_flight() >= window_ ? 0 : window_ - in_flight(); }
  std::uint32_t window() const { return window_; }
  // A report of the peer; false if it claims more than was sent (then nothing changes).
  bool on_report(Instant now, std::uint32_t largest_sequence, std::uint32_t received,
                 Duration delay);
  // Smoothed share of our datagrams that arrived
  double delivered_fraction() const { return delivered_; }
  // How often a control datagram is sent at once. A lost one costs a time-out, a copy 36 bytes:
  // where one datagram in a hundred is lost, three copies leave one in a million such waits.
  int copies() const { return delivered_ < 0.99 ? 3 : 1; }

  // Receiving side.
  void on_arrival(Instant now, std::uint32_t sequence);
  void on_group_arrival(Instant now, std::uint32_t sequence);
  // By numbers and not by arrivals: copies that a network makes of reports would be answered by
  // ever more reports.
  bool report_wanted() const {
    return largest_seen_ - largest_reported_ >= report_every_ ||
           group.unreported() >= report_every_;
  }
  void on_reported() {
    largest_reported_ = largest_seen_;
    group.on_reported();
  }
  std::uint32_t largest_seen() const { return largest_seen_; }
  std::uint32_t received() const { return received_; }
  Duration since_largest(Instant now) const {
    return largest_seen_ == 0 ? Duration(0) : now - largest_at_;
  }
  // Since anything came that had not been overtaken, multicast or not.
  Duration silence(Instant now) const { return now - std::max(largest_at_, group_at_); }

  // How long nothing must have come after the sender said that it was done: time for overtaken
  // packets to arrive. Where what is missing will be asked for, impatience costs a copy of what was
  // overtaken, patience a part of every repair; where it is given up, the loss of it.
  Duration quiet_time(bool gives_up) const {
    const Duration gaps = 2 * gap.mean();
    return std::min(gives_up ? std::max(gaps, rtt.smoothed() / 4) : gaps, rtt.timeout());
  }

  RoundTrip rtt;
  ArrivalGap gap;
  GroupPath group;

  // What the peer said about itself.
  std::uint32_t peer_opened_below = 0;
  std::uint32_t peer_settled_below = 0;
  std::uint32_t peer_point_opened_below = 0;  // receives it posted for our sends
  bool heard = false;                         // anything valid came of it
  bool gone = false;                          // it said good-bye

  // Whether the peer has opened an operation, as far as it said.
  bool has_opened(std::uint32_t number, bool message) const {
    return after(message ? peer_point_opened_below : peer_opened_below, number);
  }

  MissedRounds missed;  // collectives for which it came too late here

  // Work waiting to be sent.
  bool report_due = false;
  bool probe_due = false;

  Instant report_at = Instant::infinite_future();  // a delayed report, about:
  // Flows from the peer settled since the last report
  std::uint32_t unreported_settles = 0;
  // One of them was a receive, which only a report can tell
  bool point_unreported = false;
  Instant probe_at = Instant::infinite_future();  // armed while the window is full
  std::uint32_t probe_tries = 0;

 private:
  std::uint32_t window_ = 64;
  std::uint32_t report_every_ = 16;
  std::uint32_t next_sequence_ = 1;
  std::uint32_t acknowledged_ = 0;
  std::uint32_t received_by_peer_ = 0;
  double delivered_ = 1.0;
  // When each of the last datagrams was sent, by sequence modulo the size. A round trip is measured
  // only for the very datagram that a report names: its delay field is about that one.
  std::vector<Instant> sent_at_;  // made by configure(): a power of two
  std::uint32_t largest_seen_ = 0;
  std::uint32_t received_ = 0;
  std::uint32_t largest_reported_ = 0;
  Instant largest_at_{0};
  Instant group_at_{0};
};

}  // namespace leeway::protocol
