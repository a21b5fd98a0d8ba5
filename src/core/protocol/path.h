// Path from this process to another one, shared by all communicators to which both processes
// belong: numbering, credit, round-trip time, and the last sign of life.
//
// Credit: the sender counts every datagram of the path, and the receiver reports the largest number
// it saw. A datagram with a lower number that was not received is *written off*, not sent again.
// Repair is the task of operations, not of paths. All datagrams with higher numbers are in flight.
// With at most a window in flight, the receiver's socket buffer cannot overflow, however many
// communicators send.
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
// A sample far above all earlier ones indicates a pause: a process stood still, or its machine did.
// If such a sample were used, time-outs would become as long as the pause. So such a sample is used
// only if a datagram that was sent after it ended takes so long, too.
class RoundTrip {
 public:
  explicit RoundTrip(Duration initial = std::chrono::milliseconds(10))
      : smoothed_(initial.count()), variation_(initial.count() / 2) {}

  // Takes in the round trip of a datagram that was sent at `sent`.
  void on_sample(Instant sent, Duration sample);
  Duration smoothed() const { return Duration(smoothed_); }
  // Returns how long silence must last before asking again is worth it. The time-out doubles with
  // each unanswered try, up to 64 times the first one, but not beyond limits::kBackOffNs or twice
  // the first one, whichever is longer.
  Duration timeout(std::uint32_t tries = 0) const;
  bool measured() const { return samples_ > 0; }

 private:
  // Returns true if the sample may come from a pause, so that a later one must confirm it.
  bool doubts(Instant sent, std::int64_t rtt);

  std::int64_t smoothed_;
  std::int64_t variation_;
  std::uint64_t samples_ = 0;
  // End of the first doubted sample. Datagrams sent before this time may have met the same pause,
  // so they do not confirm that sample.
  Instant doubted_until_ = Instant::infinite_future();
};

// Contents of the other process's report about our datagrams.
struct PathReport {
  std::uint32_t largest_sequence = 0;
  std::uint32_t received = 0;
  std::uint32_t received_bytes = 0;
  std::uint32_t arrived_us = 0;      // the other's clock when largest_sequence arrived
  std::uint32_t ect = 0;             // datagrams that came with ECT(0) or ECT(1)
  std::uint32_t ce = 0;              // datagrams that a queue marked
  std::uint32_t grant = UINT32_MAX;  // bytes after largest_sequence for which it has room
  std::uint16_t host_drops = 0;      // datagrams that found its socket full
  Duration delay{0};                 // time since largest_sequence arrived
};

class Path {
 public:
  // Configures the path. Several communicators may do so; the smallest window is used.
  // `peers_window` is the least window of the other process towards this one, which sets how often
  // reports are due; 0 means the same as ours. `window_most` is the largest window that widen() may
  // be given later. Windows are in datagrams.
  void configure(std::uint32_t window_datagrams, Duration initial_rtt,
                 std::uint32_t peers_window = 0, std::uint32_t window_most = 0);
  // Call it when datagrams have become shorter, so that more of them fit into the window. Does
  // nothing if several communicators share the path.
  void widen(std::uint32_t window_datagrams, std::uint32_t peers_window);

  // Call it when the other process has another address. Round trip and losses are learnt anew;
  // numbers go on.
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
  // Sets a second limit on the datagrams in flight, beside the window, until the next call. A limit
  // below limits::kGrantedDatagramsMin is raised to that number.
  void limit(std::uint32_t datagrams) {
    limit_ = std::max(datagrams, limits::kGrantedDatagramsMin);
    open_ = std::min(window_, limit_);
  }
  // While `held` is true, the path has no credit: the relay on the way has no room for data.
  void hold(bool held) { held_ = held; }
  bool held() const { return held_; }
  // Returns true if the limit is below the window, and at least half of the limit is in flight.
  bool nears_limit() const { return limit_ < window_ && 2 * in_flight() >= limit_; }
  // Returns the number of datagrams that leave in a round trip, at the pace of those in flight. If
  // this rank had nothing more to send, the path could carry more.
  double sent_in_round_trip(Instant now) const;
  // Largest number of datagrams of which send times are kept.
  std::size_t remembered() const { return remembered_; }
  // Returns the number of pieces in which a datagram of this length travels. A datagram longer than
  // a frame is sent only where paths carry it whole (WIRE 10.7). So it counts as a frame
  // (kFrameBytesMax).
  std::size_t pieces(std::size_t bytes) const {
    return pieces_of(std::min(bytes, limits::kFrameBytesMax), size.bytes());
  }
  // Takes in a report of the peer. Returns false if it claims more than was sent (then nothing
  // changes).
  bool on_report(Instant now, const PathReport& report);
  const PathReport& reported() const { return reported_; }
  // Makes the next data datagram ask for a report.
  void ask() { asks_ = true; }
  bool take_question() {
    if (!asks_) return false;
    asks_ = false;
    return asked_ = true;
  }
  // Returns true if one of our data datagrams has asked for a report since the last call.
  bool take_asked() { return std::exchange(asked_, false); }
  // Smoothed share of our datagrams that arrived.
  double delivered_fraction() const { return delivered_; }
  // Returns an upper estimate of the share of datagrams that are lost: the mean plus 1.5 standard
  // errors. Among an operation's many links, the loss of some is underestimated by that much.
  // Overtaken datagrams are missing until they come. So the number that came late recently is
  // subtracted from the number missing now.
  double loss_at_most() const {
    const double loss = std::max(missing_ - overtaken_ / known_, 0.0);
    return loss + 1.5 * std::sqrt(loss * loss_dispersion() / (2.0 * known_));
  }
  // Variance divided by mean of the number of losses in a stretch of datagrams (LossBursts). It is
  // 1 if losses are independent, and about 2b - 1 if they come in bursts of b datagrams on average.
  // If datagrams are overtaken, it is 1 as well, because they look lost until they come.
  double loss_dispersion() const { return overtaken_ > 0.0 ? 1.0 : bursts_.dispersion(); }
  // Returns the number of copies of a control datagram that are sent at once. A lost datagram costs
  // a time-out, and a copy costs some tens of bytes. At 1 % loss, three copies are all lost once in
  // a million. The number grows with unanswered tries, because on some links a burst of losses ends
  // only after a number of packets.
  int copies(std::uint32_t tries = 0) const {
    return std::max(delivered_ < 0.99 ? 3 : 1, tries < 4 ? 1 << tries : kCopiesMax);
  }
  static constexpr int kCopiesMax = 16;

  // Notes that a communicator has data and found no credit.
  void note_blocked() { blocked_ = true; }
  // Returns true once credit has come back after note_blocked(). Then all communicators may send
  // again.
  bool take_unblocked() {
    const bool unblocked = blocked_ && credit() > 0;
    blocked_ &= !unblocked;
    return unblocked;
  }

  // Bytes of the trains that were handed out to this path.
  void note_sent(std::size_t bytes) { sent_bytes_ += bytes; }
  std::uint64_t sent_bytes() const { return sent_bytes_; }

  // Receiving side.
  void on_arrival(Instant now, std::uint32_t sequence, std::size_t bytes);
  // Notes the ECN field in the network header of a datagram that was accepted.
  void note_mark(Ecn ecn) {
    ect_ += ecn == Ecn::ect0 || ecn == Ecn::ect1;
    ce_ += ecn == Ecn::ce;
  }
  // Sets this host's grant and drops for reports (WIRE 3.16).
  void tell_host(std::uint32_t grant, std::uint16_t drops) {
    grant_ = grant;
    host_drops_ = drops;
  }
  std::uint32_t grant() const { return grant_; }
  std::uint16_t host_drops() const { return host_drops_; }
  std::uint32_t ect() const { return ect_; }
  std::uint32_t ce() const { return ce_; }
  // Notes that a valid datagram came, numbered on this path or multicast.
  void on_life(Instant now) { heard_at_ = now; }
  // WIRE 6.9: takes in that the other process answered our probe `answered`, although it has not
  // joined the probe's communicator. Returns false if no such datagram was sent (then nothing
  // changes).
  bool on_alive(Instant now, std::uint32_t answered);
  // Returns true if a report is due. Compares sequence numbers and not numbers of arrivals, because
  // a network that copies reports would otherwise cause ever more reports.
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

  // Time of the last valid datagram; long ago if none ever came.
  Instant heard_at() const { return heard_at_; }
  // Returns true if the other process was given up as dead. Such a process stays dead; if it speaks
  // again, it is told so.
  bool dead() const { return dead_; }
  void give_up() { dead_ = true; }

  RoundTrip rtt;
  PathSize size;
  Pieces arriving;  // datagrams of the peer that come in pieces

 private:
  // Limit on the number of datagrams over which losses are smoothed. At 10 % loss, this many give
  // the rate to within a tenth of its value.
  static constexpr std::uint32_t kMemoryMax = 1024;
  // Prior for the loss estimate: start as if 32 datagrams had been sent and none lost.
  static constexpr std::uint32_t kKnownFirst = 32;

  static constexpr std::size_t kRememberedFirst = 2048;

  void remember_more();
  void set_window(std::uint32_t window, std::uint32_t peers_window);

  Duration initial_rtt_ = std::chrono::milliseconds(10);
  int communicators_ = 0;     // communicators that ever configured the path
  std::uint32_t window_ = 0;  // 0 if not configured
  std::uint32_t memory_ = 2;  // shares are smoothed over this many datagrams,
  std::uint32_t known_ = 0;   // or over the number seen so far, if that is smaller
  std::uint32_t limit_ = UINT32_MAX;
  std::uint32_t open_ = 0;  // the lesser of window_ and limit_
  std::uint32_t report_every_ = 16;
  std::uint32_t next_sequence_ = 1;
  std::uint64_t sent_bytes_ = 0;
  PathReport reported_;
  double delivered_ = 1.0;
  double missing_ = 0.0;     // smoothed share; a late arrival counts negative
  double below_peak_ = 0.0;  // recent peak of the number missing, less the number missing now
  double overtaken_ = 0.0;   // recent peak of below_peak_
  LossBursts bursts_;
  bool blocked_ = false;
  bool held_ = false;
  bool dead_ = false;
  bool asks_ = false;
  bool asked_ = false;
  // Send time of each recent datagram, by sequence modulo the size. A round trip is measured only
  // for the very datagram that a report names, because the report's delay is about that datagram.
  std::vector<Instant> sent_at_;  // made by configure(): a power of two
  std::size_t remembered_ = 0;    // largest size of sent_at_
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
