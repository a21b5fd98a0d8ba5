// What a process knows about its path to another process, whatever communicators both belong to:
// numbering, credit, round-trip time, and the last sign of life.
//
// Credit: the sender counts every datagram of the path; the receiver reports the largest number it
// saw. What is numbered below that and not received is *written off*, not resent: repair is a
// matter of operations, not of paths. In flight is whatever is numbered above. With at most a
// window in flight, the receiver's socket buffer cannot overflow, however many communicators send.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "leeway/transport.h"
#include "protocol/loss_bursts.h"
#include "protocol/path_size.h"
#include "protocol/pieces.h"
#include "protocol/serial_number.h"

namespace leeway::protocol {

// Smoothed round-trip time after RFC 6298, in nanoseconds.
//
// A sample far above all before tells of a pause: a process stood still, or its machine did. Taken
// for a round trip, five seconds would make time-outs of five seconds, and whoever lost a datagram
// then would wait for them. It counts when a datagram that was sent later takes as long.
class RoundTrip {
 public:
  explicit RoundTrip(Duration initial = std::chrono::milliseconds(10))
      : smoothed_(initial.count()), variation_(initial.count() / 2) {}

  // Of a datagram that was sent at `sent`.
  void on_sample(Instant sent, Duration sample);
  Duration smoothed() const { return Duration(smoothed_); }
  // How long silence must last before something is worth asking again. Doubled per unanswered try,
  // up to 64 times; beyond limits::kBackOffNs only once.
  Duration timeout(std::uint32_t tries = 0) const;
  bool measured() const { return samples_ > 0; }

 private:
  // Whether the sample is to wait for another that confirms it.
  bool doubts(Instant sent, std::int64_t rtt);

  std::int64_t smoothed_;
  std::int64_t variation_;
  std::uint64_t samples_ = 0;
  // The end of the first sample that is in doubt. What was sent before may have met the same pause.
  Instant doubted_until_ = Instant::infinite_future();
};

// What a report of the other process says of our datagrams.
struct PathReport {
  std::uint32_t largest_sequence = 0;
  std::uint32_t received = 0;
  std::uint32_t received_bytes = 0;
  std::uint32_t arrived_us = 0;      // its clock when the largest arrived
  std::uint32_t ect = 0;             // that came with ECT(0) or ECT(1)
  std::uint32_t ce = 0;              // that a queue marked
  std::uint32_t grant = UINT32_MAX;  // bytes beyond the largest that it has room for
  std::uint16_t host_drops = 0;      // that found its socket full
  Duration delay{0};                 // since then
};

class Path {
 public:
  // Several communicators may configure one path: the smallest window counts.
  // `peers_window`: that of the other process to this one at least, which sets how often reports
  // are due; 0: the same. `window_most`: what widen() may be given later.
  void configure(std::uint32_t window_datagrams, Duration initial_rtt,
                 std::uint32_t peers_window = 0, std::uint32_t window_most = 0);
  // The datagrams of the only communicator have become shorter: more of them fit into a window.
  void widen(std::uint32_t window_datagrams, std::uint32_t peers_window);

  // The other process is elsewhere: its round trip and its losses are to be learnt anew. Numbers go
  // on.
  void begin_anew() {
    rtt = RoundTrip(initial_rtt_);
    delivered_ = 1.0;
    missing_ = below_peak_ = overtaken_ = 0.0;
    known_ = std::min(memory_, kKnownFirst);
    bursts_ = LossBursts();
  }

  // Sending side.
  std::uint32_t take_sequence(Instant now);
  std::uint32_t last_sequence() const { return next_sequence_ - 1; }
  std::uint32_t in_flight() const { return next_sequence_ - 1 - reported_.largest_sequence; }
  std::uint32_t credit() const { return held_ || in_flight() >= open_ ? 0 : open_ - in_flight(); }
  std::uint32_t window() const { return window_; }
  // At most so many datagrams may be in flight for now, whatever the window is.
  void limit(std::uint32_t datagrams) {
    limit_ = std::max(datagrams, limits::kGrantedDatagramsMin);
    open_ = std::min(window_, limit_);
  }
  // Data wait: the relay on the way has no room for them yet.
  void hold(bool held) { held_ = held; }
  bool held() const { return held_; }
  // Less than the window may be in flight, and half of that is.
  bool nears_limit() const { return limit_ < window_ && 2 * in_flight() >= limit_; }
  // How many leave in a round trip, at the pace of those in flight: these may be fewer, where they
  // are all that there was to send.
  double sent_in_round_trip(Instant now) const;
  // Of so many datagrams at most there is anything to remember.
  std::size_t remembered() const { return remembered_; }
  // In how many pieces a datagram of this length travels. One that is longer than a frame's is sent
  // only where paths carry it whole (WIRE 10.7).
  std::size_t pieces(std::size_t bytes) const {
    return pieces_of(std::min(bytes, limits::kFrameBytesMax), size.bytes());
  }
  // A report of the peer; false if it claims more than was sent (then nothing changes).
  bool on_report(Instant now, const PathReport& report);
  // The newest of them, as it was.
  const PathReport& reported() const { return reported_; }
  // The next data datagram is to ask for a report.
  void ask() { asks_ = true; }
  bool take_question() {
    if (!asks_) return false;
    asks_ = false;
    return asked_ = true;
  }
  // Whether one did since this was asked last.
  bool take_asked() { return std::exchange(asked_, false); }
  // Smoothed share of our datagrams that arrived
  double delivered_fraction() const { return delivered_; }
  // The share that is lost and one and a half standard errors more: of all links of an operation
  // some are misjudged so. Datagrams that are overtaken are missing until they come. As many as
  // came late lately may be missing now, and are not believed to be lost.
  double loss_at_most() const {
    const double loss = std::max(missing_ - overtaken_ / known_, 0.0);
    return loss + 1.5 * std::sqrt(loss * loss_dispersion() / (2.0 * known_));
  }
  // Variance of the number of losses over its mean: 1 where each datagram is lost by itself, about
  // twice the mean length of bursts less one where they come in bursts. 1 where datagrams are
  // overtaken, which makes numbers vary, too.
  double loss_dispersion() const { return overtaken_ > 0.0 ? 1.0 : bursts_.dispersion(); }
  // How often a control datagram is sent at once. A lost one costs a time-out, a copy 36 bytes:
  // where one datagram in a hundred is lost, three copies leave one in a million such waits.
  int copies() const { return delivered_ < 0.99 ? 3 : 1; }
  // The same of one that was sent so often without an answer: as many more as the waits before it
  // were longer. A burst of losses that a copy a second meets would last for seconds.
  int copies(std::uint32_t tries) const {
    return std::max(copies(), tries < 4 ? 1 << tries : kCopiesMax);
  }
  static constexpr int kCopiesMax = 16;

  // A communicator has data and found no credit: all of them look again when some comes back.
  void note_blocked() { blocked_ = true; }
  bool take_unblocked() {
    const bool unblocked = blocked_ && credit() > 0;
    blocked_ &= !unblocked;
    return unblocked;
  }

  // Of trains that were handed out to it.
  void note_sent(std::size_t bytes) { sent_bytes_ += bytes; }
  std::uint64_t sent_bytes() const { return sent_bytes_; }

  // Receiving side.
  void on_arrival(Instant now, std::uint32_t sequence, std::size_t bytes);
  // What the network's header said of a datagram that was accepted.
  void note_mark(Ecn ecn) {
    ect_ += ecn == Ecn::ect0 || ecn == Ecn::ect1;
    ce_ += ecn == Ecn::ce;
  }
  // What reports are to say of this host (WIRE 3.16).
  void tell_host(std::uint32_t grant, std::uint16_t drops) {
    grant_ = grant;
    host_drops_ = drops;
  }
  std::uint32_t grant() const { return grant_; }
  std::uint16_t host_drops() const { return host_drops_; }
  std::uint32_t ect() const { return ect_; }
  std::uint32_t ce() const { return ce_; }
  // Anything valid came, numbered on this path or multicast.
  void on_life(Instant now) { heard_at_ = now; }
  // WIRE 6.9: the process answered the datagram of that number, and belongs to no communicator that
  // could have received it. False: none of that number was sent (then nothing changes).
  bool on_alive(Instant now, std::uint32_t answered);
  // By numbers and not by arrivals: copies that a network makes of reports would be answered by
  // ever more reports.
  bool report_wanted() const { return largest_seen_ - largest_reported_ >= report_every_; }
  void on_reported() { largest_reported_ = largest_seen_; }
  std::uint32_t report_every() const { return report_every_; }
  std::uint32_t largest_seen() const { return largest_seen_; }
  std::uint32_t received() const { return received_; }
  std::uint32_t received_bytes() const { return received_bytes_; }
  Instant largest_arrived_at() const { return largest_at_; }
  Duration since_largest(Instant now) const {
    return largest_seen_ == 0 ? Duration(0) : now - largest_at_;
  }

  // When anything valid came last; long ago: nothing ever.
  Instant heard_at() const { return heard_at_; }
  // The process at the other end was given up for dead. It stays so: if it comes back it is told.
  bool dead() const { return dead_; }
  void give_up() { dead_ = true; }

  RoundTrip rtt;
  PathSize size;
  Pieces arriving;  // of the peer's datagrams

 private:
  // Losses are known to a tenth after so many datagrams, where one in ten is lost.
  static constexpr std::uint32_t kMemoryMax = 1024;
  // Of which none was lost, before any was sent.
  static constexpr std::uint32_t kKnownFirst = 32;

  static constexpr std::size_t kRememberedFirst = 2048;

  void remember_more();
  void set_window(std::uint32_t window, std::uint32_t peers_window);

  Duration initial_rtt_ = std::chrono::milliseconds(10);
  int communicators_ = 0;     // that ever configured it
  std::uint32_t window_ = 0;  // not configured
  std::uint32_t memory_ = 2;  // shares are smoothed over so many datagrams,
  std::uint32_t known_ = 0;   // or as many as there were
  std::uint32_t limit_ = UINT32_MAX;
  std::uint32_t open_ = 0;  // the lesser of both
  std::uint32_t report_every_ = 16;
  std::uint32_t next_sequence_ = 1;
  std::uint64_t sent_bytes_ = 0;
  PathReport reported_;
  double delivered_ = 1.0;
  double missing_ = 0.0;     // smoothed share; what comes late counts as less than none
  double below_peak_ = 0.0;  // how much fewer datagrams are missing than were lately
  double overtaken_ = 0.0;   // the most that this was lately
  LossBursts bursts_;
  bool blocked_ = false;
  bool held_ = false;
  bool dead_ = false;
  bool asks_ = false;
  bool asked_ = false;
  // When each of the last datagrams was sent, by sequence modulo the size. A round trip is measured
  // only for the very datagram that a report names: its delay field is about that one.
  std::vector<Instant> sent_at_;  // made by configure(): a power of two,
  std::size_t remembered_ = 0;    // and so many at most
  std::uint32_t largest_seen_ = 0;
  std::uint32_t received_ = 0;
  std::uint32_t received_bytes_ = 0;
  std::uint32_t ect_ = 0;
  std::uint32_t ce_ = 0;
  std::uint32_t grant_ = UINT32_MAX;
  std::uint16_t host_drops_ = 0;
  std::uint32_t largest_reported_ = 0;
  Instant largest_at_{0};
  Instant heard_at_{0};
};

}  // namespace leeway::protocol
