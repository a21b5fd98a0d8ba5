// What a communicator knows about one of its peers: how far the peer has come, its arrival rhythm,
// and what is to be said to it. Numbers, credit and round trip belong to the path (path.h), which
// all communicators of two processes share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/limits.h"
#include "base/time.h"
#include "leeway/types.h"
#include "protocol/group_path.h"
#include "protocol/missed_rounds.h"
#include "protocol/path.h"
#include "protocol/serial_number.h"
#include "protocol/watch.h"

namespace leeway::protocol {

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
  // Before anything else. The path outlives the link.
  void attach(Path& path) { path_ = &path; }
  Path& path() { return *path_; }
  const Path& path() const { return *path_; }
  const RoundTrip& rtt() const { return path_->rtt; }
  // How often a control datagram is sent at once.
  int copies(std::uint32_t tries = 0) const { return path_->copies(tries); }

  // A report of the peer; false if it claims more than was sent (then nothing changes).
  bool on_report(Instant now, const PathReport& report);
  void on_arrival(Instant now, std::uint32_t sequence, std::size_t bytes);
  void on_group_arrival(Instant now, std::uint32_t sequence);
  bool report_wanted() const {
    return path_->report_wanted() || group.unreported() >= path_->report_every();
  }
  void on_reported() {
    path_->on_reported();
    group.on_reported();
  }
  // Since anything came that had not been overtaken, multicast or not.
  Duration silence(Instant now) const { return now - latest_at_; }

  // How long nothing must have come after the sender said that it was done: time for overtaken
  // packets to arrive. Where what is missing will be asked for, impatience costs a copy of what was
  // overtaken, patience a part of every repair; where it is given up, the loss of it.
  Duration quiet_time(bool gives_up) const {
    const Duration gaps = 2 * gap.mean();
    return std::min(gives_up ? std::max(gaps, rtt().smoothed() / 4) : gaps, rtt().timeout());
  }

  ArrivalGap gap;
  GroupPath group;

  // What the peer said about itself.
  std::uint32_t peer_opened_below = 0;
  std::uint32_t peer_settled_below = 0;
  std::uint32_t peer_point_opened_below = 0;  // receives it posted for our sends
  bool heard = false;                         // anything valid came of it
  bool answered = false;                      // it has reported a datagram of ours
  bool gone = false;                          // it said good-bye, or is dead
  bool dead = false;                          // it was given up (WIRE 6.6)
  bool gave_us_up = false;                    // it has said so (WIRE 6.7)
  bool content = false;                       // it wants nothing more of this rank, which leaves

  // Whether the peer has opened an operation, as far as it said.
  bool has_opened(std::uint32_t number, bool message) const {
    return after(message ? peer_point_opened_below : peer_opened_below, number);
  }

  MissedRounds missed;  // collectives for which it came too late here

  Watch watch;  // whether it lives

  // Work waiting to be sent.
  bool given_up_due = false;  // to one that is dead, and nothing else (WIRE 6.7)
  bool report_due = false;
  int report_copies = 0;  // so many at least: what it says may have been lost before
  bool probe_due = false;

  // The peer's probe waits for its turn (WIRE 6.10), and when it is the next one's.
  Instant answer_at = Instant::infinite_future();
  Instant next_answer_at{0};

  Instant report_at = Instant::infinite_future();  // a delayed report, about:
  // Flows from the peer settled since the last report
  std::uint32_t unreported_settles = 0;
  // One of them was a receive, which only a report can tell
  bool point_unreported = false;
  Instant probe_at = Instant::infinite_future();  // armed while the window is full
  std::uint32_t probe_tries = 0;

 private:
  Path* path_ = nullptr;
  std::uint32_t largest_seen_ = 0;  // of this communicator's datagrams
  Instant latest_at_{0};
};

}  // namespace leeway::protocol
