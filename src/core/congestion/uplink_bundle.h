// One rank's uplink: all links that share it, one controller, one pacer.
//
// Datagrams to all peers go through the bundle. It turns peers' reports into samples for the
// controller, keeps the controller's pace, and asks peers for reports often enough. In the
// protocol's outbox links send in turn, one batch each. A batch is at most the pacer's quantum, so
// equal turns are equal shares.
//
// Silence of the peers is no permission to send: while nobody answers, the pace is halved at every
// time-out.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "congestion/controller.h"
#include "congestion/delay_jitter.h"
#include "congestion/late_arrivals.h"
#include "congestion/least_delay.h"
#include "congestion/link_governor.h"
#include "congestion/link_log.h"

namespace leeway::congestion {

// A peer's report of our datagrams.
struct Arrivals {
  std::uint32_t largest = 0;         // number of the newest datagram that arrived
  std::uint32_t received = 0;        // datagrams that arrived, in all
  std::uint32_t received_bytes = 0;  // bytes that arrived, modulo 2^32
  std::uint32_t arrived_us = 0;      // the peer's clock when the newest arrived, 24 bits of it
  std::uint32_t ect = 0;             // arrived datagrams that were unmarked, but markable
  std::uint32_t ce = 0;              // datagrams that a queue on the way marked
  std::uint32_t grant = UINT32_MAX;  // bytes beyond `largest` that the peer has room for
  std::uint16_t host_drops = 0;      // datagrams that found the peer's socket full, modulo 2^16
  Duration held_back{0};             // from `arrived_us` until the report left
};

// A batch that was handed to the socket.
struct Sent {
  std::uint32_t last = 0;  // number of its last datagram
  std::uint32_t datagrams = 0;
  std::size_t segment_bytes = 0;  // bytes of each datagram but the last
  std::size_t total_bytes = 0;
};

// Delays of datagrams to one peer, as its reports show them; 0 if not known.
struct LinkDelay {
  Duration rtt_min{0};
  Duration queueing{0};  // in the latest report
};

class UplinkBundle {
 public:
  explicit UplinkBundle(std::unique_ptr<Controller> controller);

  // Call it before anything is sent to the peer. `datagrams`: how many may be unreported at a time.
  void make_link(std::size_t link, std::size_t datagrams);

  // Returns true if data may leave now. If not, data may leave after a report, or after on_wake()
  // at next_wake().
  bool open(Instant now) const { return now >= free_at_ && !full(); }
  // Limit on the bytes of the next batch.
  std::size_t quantum_bytes() const { return quantum_bytes_; }
  // Call it when there was data to send, and open() was false.
  void note_held_back() { held_back_ = true; }
  // Call it when open() was true, and there was nothing to send.
  void note_idle() {
    held_back_ = false;
    note_limited();
  }

  // Counts a batch that left. `share`: of the links with data to send, the fraction whose peers are
  // ready for it. The batch is charged as bytes / share, as if the other links had used their
  // turns.
  void on_sent(Instant now, std::size_t link, const Sent& sent, double share = 1);
  // Counts a batch for many peers, on which no report comes.
  void on_group_sent(Instant now, std::size_t bytes) { spend(now, bytes); }
  // Returns true if the next datagram to the peer must ask for a report: every quarter of a round
  // trip, and before the window is full, since only a report opens the window again.
  bool asks(Instant now, std::size_t link) const;
  void on_asked(Instant now, std::size_t link);
  // Returns how many datagrams may be in flight to the peer, each as long as the longest one sent
  // there. Limits are the peer's grant, the queue at the peer, and 1 MiB for a near peer. Returns
  // UINT32_MAX if there is no limit.
  std::uint32_t datagrams_granted(std::size_t link) const;
  // Takes in a report. The caller must drop reports that a later report overtook.
  void on_report(Instant now, std::size_t link, const Arrivals& arrivals);

  // Call it when the peer has moved. Forgets all measurements of its link, and writes off its
  // datagrams in flight.
  void begin_anew(Instant now, std::size_t link);

  void on_wake(Instant now);
  // Returns true if every peer that has answered is so far away (2 ms or more) that waking a thread
  // takes a small part of a round trip. Returns false until a peer has answered.
  bool all_far() const;
  // Returns the time at which on_wake() is due; infinite future if only a report can change
  // anything.
  Instant next_wake() const;
  // Returns the time from which the pace lets data leave; infinite future if only a report can open
  // the window.
  Instant opens_at() const { return full() ? Instant::infinite_future() : free_at_; }
  // Returns the time at which on_wake() must check for silence next.
  Instant watch_at() const;
  // Returns the time that a full quantum takes at the pace.
  Duration quantum_time() const { return time_of(quantum_bytes_); }

  const Controller& controller() const { return *controller_; }
  Pace pace() const;
  std::uint64_t in_flight_bytes() const { return in_flight_; }
  LinkDelay delay(std::size_t link) const {
    if (link >= links_.size() || !links_[link].rtt.known()) return {};
    return {.rtt_min = Duration(links_[link].rtt.value()), .queueing = links_[link].queueing};
  }

 private:
  // A datagram that a report named, and what that report said at the time.
  struct Mark {
    Departure departure;
    std::uint32_t arrived_us = 0;
    std::uint32_t received_bytes = 0;
  };
  struct Link {
    LinkLog log;
    std::array<Mark, 16> marks;  // the latest marks, at least an eighth of a round trip apart
    std::size_t marks_made = 0;
    LinkGovernor governor;
    LateArrivals late;
    LeastDelay rtt;
    LeastDelay one_way;
    DelayJitter jitter;
    // Raw one-way time in the first report; it contains the unknown difference of the two clocks.
    std::optional<std::uint32_t> one_way_us;
    Instant first_sent_at{0};
    Instant sent_at{0};
    bool near = false;  // does not pass the bottleneck: data on this link is not paced
    // True if losses showed that the link passes the bottleneck although its peer is near. Only
    // begin_anew() resets it.
    bool lossy = false;
    // Number of datagrams to a near peer that reports covered since its losses were last judged,
    // and how many of these datagrams were lost.
    std::uint32_t near_covered = 0;
    std::uint32_t near_lost = 0;
    Duration queueing{0};  // in the latest report
    Instant reported_at{0};
    std::uint32_t largest = 0;
    std::uint32_t received = 0;
    std::uint32_t received_bytes = 0;
    std::uint32_t ect = 0;
    std::uint32_t ce = 0;
    // Datagrams that arrived and are neither in `ect` nor in `ce`, so the network may erase marks.
    std::uint32_t unmarkable = 0;
    std::uint64_t covered = 0;        // datagrams up to the newest one that a report covers
    std::uint64_t counted = 0;        // covered datagrams that are believed to have arrived
    std::uint64_t counted_bytes = 0;  // bytes that are believed to have arrived
    std::uint64_t host_dropped = 0;   // datagrams that the peer's full socket dropped, as believed
    std::uint16_t host_drops = 0;
    std::uint32_t grant = UINT32_MAX;
    std::size_t datagram_bytes = 1;  // the longest segment that was sent
    Instant asked_at{0};
    bool asked = false;
  };

  void measure_rate(Link& at, const Departure& departure, const Arrivals& arrivals, Sample& sample);
  std::uint32_t take_marks(Link& at, const Arrivals& arrivals, std::uint32_t received) const;
  std::uint64_t take_host_drops(Link& at, const Arrivals& arrivals) const;
  Duration queueing(Instant now, const Link& at) const;
  Duration jitter() const;
  void judge_nearness(Link& at);
  static void judge_losses(Link& at, std::uint32_t covered, std::uint32_t received,
                           std::uint16_t host_drops);
  void write_off_stale(Instant now);
  void govern(Link& at, const Sample& sample) const;
  bool awaits_first_report(Instant now) const;
  void note_limited() { limited_until_ = delivered_ + std::max<std::uint64_t>(in_flight_, 1); }
  bool full() const { return in_flight_ >= pace_.in_flight_bytes; }
  bool is_stuck() const { return held_back_ && full(); }
  Duration stuck_for() const { return 3 * std::max(rtt_, questions_.least); }
  Duration patience() const;
  // Returns the length of lost time that a host may make up for if it woke late.
  Duration catch_up() const;
  Duration time_of(std::size_t bytes) const {
    const double ns_per_byte = 8e9 / pace().bits_per_second;
    return Duration(static_cast<std::int64_t>(static_cast<double>(bytes) * ns_per_byte));
  }
  void spend(Instant now, std::size_t bytes);
  void take_pace();

  // Number of unanswered questions that count as silence. Fewer may have been lost by chance.
  static constexpr int kAsksMax = 3;

  std::unique_ptr<Controller> controller_;
  const Questions questions_;
  std::vector<Link> links_;
  std::size_t links_made_ = 0;
  Pace pace_;
  std::size_t quantum_bytes_ = 0;
  double trust_ = 1;  // halved by silence
  Instant free_at_{0};
  Duration rtt_ = std::chrono::milliseconds(10);  // until it is measured
  Duration nearest_ = Duration::max();            // the shortest round trip that was measured
  std::uint64_t in_flight_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t covered_ = 0;
  std::uint64_t delivered_ = 0;
  Instant delivered_at_{0};
  std::uint64_t limited_until_ = 0;  // value of delivered_ until which sending counts as limited
  bool held_back_ = false;
  int asks_ = 0;
  Instant heard_at_{0};
  Instant written_off_at_{0};
};

}  // namespace leeway::congestion
