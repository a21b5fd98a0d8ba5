// What one communicator knows of one of its peers: how far the peer has come, how fast its
// datagrams arrive, and which control datagrams are due to it. Numbers, credit and round trip
// belong to the path (path.h), which all communicators of two processes share.
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

// Mean time between consecutive arrivals of a link while datagrams were on their way.
class ArrivalGap {
 public:
  void on_arrival(Instant now);
  // Call it if no datagram was on its way before `since`: the first arrival after that time starts
  // a new series.
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
  // Called before any other method. The path must outlive the link.
  void attach(Path& path) { path_ = &path; }
  Path& path() { return *path_; }
  const Path& path() const { return *path_; }
  const RoundTrip& rtt() const { return path_->rtt; }
  // Returns the number of copies of a control datagram that are sent at once.
  int copies(std::uint32_t tries = 0) const { return path_->copies(tries); }

  // Takes in a report of the peer. Returns false if it claims more than was sent (then nothing
  // changes).
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
  // Returns the time since the peer's last datagram that was multicast, or that had a higher number
  // than all before it. So a datagram that was overtaken does not end the silence.
  Duration silence(Instant now) const { return now - latest_at_; }

  // Returns how long to wait for overtaken packets after the sender said that it was done. If
  // missing packets are asked for, a short wait costs a copy of each overtaken packet, and a long
  // wait delays every repair. If they are given up (`gives_up`), a short wait loses the overtaken
  // packets.
  Duration quiet_time(bool gives_up) const {
    const Duration gaps = 2 * gap.mean();
    return std::min(gives_up ? std::max(gaps, rtt().smoothed() / 4) : gaps, rtt().timeout());
  }

  ArrivalGap gap;
  GroupPath group;

  // Progress that the peer reported.
  std::uint32_t peer_opened_below = 0;
  std::uint32_t peer_settled_below = 0;
  std::uint32_t peer_point_opened_below = 0;  // receives that the peer posted for this rank's sends
  bool heard = false;                         // a valid datagram of the peer came
  bool answered = false;                      // the peer has reported a datagram of ours
  bool gone = false;                          // the peer said good-bye, or is dead
  bool dead = false;                          // this rank gave the peer up (WIRE 6.6)
  bool gave_us_up = false;                    // the peer has said that it gave us up (WIRE 6.7)
  // If true, this rank is leaving, and the peer's latest report asks nothing more of it.
  bool content = false;

  // Returns true if the peer has reported that it opened an operation.
  bool has_opened(std::uint32_t number, bool message) const {
    return after(message ? peer_point_opened_below : peer_opened_below, number);
  }

  // Returns true if datagrams pass both ways: one came from the peer, and the peer reported one of
  // ours. A peer that has left reports no more, so one datagram from it is enough.
  bool proven() const { return heard && (answered || gone); }

  MissedRounds missed;  // collectives for which the peer came too late here

  Watch watch;  // finds out whether the peer lives

  // Control datagrams waiting to be sent.
  bool last_report_sent = false;  // ControlWriter::write_last_report() has sent it
  bool given_up_due = false;      // the only one that a dead peer gets (WIRE 6.7)
  bool report_due = false;
  int report_copies = 0;  // least number of copies: earlier reports may have been lost
  bool probe_due = false;

  // `answer_at` is when a delayed answer to the peer's probe is due (WIRE 6.10). From
  // `next_answer_at` on, a probe is answered at once.
  Instant answer_at = Instant::infinite_future();
  Instant next_answer_at{0};

  Instant report_at = Instant::infinite_future();  // when a delayed report is due
  // Number of flows from the peer that were settled since the last report.
  std::uint32_t unreported_settles = 0;
  // If true, a flow among `unreported_settles` was a message. Its sender learns only from a report
  // that the message has arrived.
  bool point_unreported = false;
  Instant probe_at = Instant::infinite_future();  // armed while the window is full
  std::uint32_t probe_tries = 0;

 private:
  Path* path_ = nullptr;
  std::uint32_t largest_seen_ = 0;  // largest sequence of this communicator's datagrams
  Instant latest_at_{0};
};

}  // namespace leeway::protocol
