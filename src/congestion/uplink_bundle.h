// One rank's uplink: all links that share it, one controller, one pacer.
//
// Datagrams to all peers go through it. It turns what their reports say into samples for the
// controller, keeps the controller's pace, and asks peers for reports often enough. Links take
// turns in the protocol's outbox, a train each; a train is never longer than the pacer's quantum,
// so turns are shares.
//
// Silence is never permission: when nobody answers, the pace is halved every time-out.
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

// What a peer's report says of our datagrams.
struct Arrivals {
  std::uint32_t largest = 0;         // number of the newest that arrived
  std::uint32_t received = 0;        // all that arrived
  std::uint32_t received_bytes = 0;  // of those, modulo 2^32
  std::uint32_t arrived_us = 0;      // the peer's clock when the newest arrived, 24 bits of it
  std::uint32_t ect = 0;             // of all that arrived: unmarked, but could have been
  std::uint32_t ce = 0;              // marked by a queue on the way
  std::uint32_t grant = UINT32_MAX;  // bytes beyond `largest` that the peer has room for
  std::uint16_t host_drops = 0;      // that did not find room in the peer's socket, modulo 2^16
  Duration held_back{0};             // since then, when the report left
};

// A train that was handed out.
struct Sent {
  std::uint32_t last = 0;  // number of its last datagram
  std::uint32_t datagrams = 0;
  std::size_t segment_bytes = 0;  // of each but the last
  std::size_t total_bytes = 0;
};

// How long datagrams to one peer take, as its reports say; 0: not known.
struct LinkDelay {
  Duration rtt_min{0};
  Duration queueing{0};  // that the latest report showed
};

class UplinkBundle {
 public:
  explicit UplinkBundle(std::unique_ptr<Controller> controller);

  // Before anything is sent to the peer: at most so many datagrams are unreported at a time.
  void make_link(std::size_t link, std::size_t datagrams);

  // Whether data may leave now. If not, on_wake() at next_wake() or a report may change that.
  bool open(Instant now) const { return now >= free_at_ && !full(); }
  // At most so long is the next train.
  std::size_t quantum_bytes() const { return quantum_bytes_; }
  // There was data, and it was not open.
  void note_held_back() { held_back_ = true; }
  // It was open, and there was nothing to send.
  void note_idle() {
    held_back_ = false;
    note_limited();
  }

  // Of the links that want to send, only this share may: nobody else gets the others' turns.
  void on_sent(Instant now, std::size_t link, const Sent& sent, double share = 1);
  // One train for many peers; nobody reports it.
  void on_group_sent(Instant now, std::size_t bytes) { spend(now, bytes); }
  // The next datagram to the peer is to ask for a report: often enough, and before the window is
  // full, when nothing else would bring one.
  bool asks(Instant now, std::size_t link) const;
  void on_asked(Instant now, std::size_t link);
  // So many datagrams of the length that was sent last may be under way to the peer, by its grant.
  std::uint32_t datagrams_granted(std::size_t link) const;
  // Not overtaken by a later one.
  void on_report(Instant now, std::size_t link, const Arrivals& arrivals);

  // The peer is elsewhere: nothing that was measured of its link holds, and nothing that is under
  // way is waited for.
  void begin_anew(Instant now, std::size_t link);

  void on_wake(Instant now);
  // Every peer that ever answered is so far away that a thread's wake-up is a small part of a round
  // trip. False until one did.
  bool all_far() const;
  // Infinite future: only a report changes anything.
  Instant next_wake() const;
  // When data may leave, as far as the pace goes; infinite future: not before a report.
  Instant opens_at() const { return full() ? Instant::infinite_future() : free_at_; }
  // When silence is looked at again.
  Instant watch_at() const;
  // How long the next train takes at the pace.
  Duration quantum_time() const { return time_of(quantum_bytes_); }

  const Controller& controller() const { return *controller_; }
  Pace pace() const;
  std::uint64_t in_flight_bytes() const { return in_flight_; }
  Duration rtt() const { return rtt_; }
  LinkDelay delay(std::size_t link) const {
    if (link >= links_.size() || !links_[link].rtt.known()) return {};
    return {.rtt_min = Duration(links_[link].rtt.value()), .queueing = links_[link].queueing};
  }

 private:
  // A datagram that a report named
  struct Mark {
    Departure departure;
    std::uint32_t arrived_us = 0;
    std::uint32_t received_bytes = 0;
  };
  struct Link {
    LinkLog log;
    std::array<Mark, 16> marks;  // the latest, an eighth of a round trip apart at least
    std::size_t marks_made = 0;
    LinkGovernor governor;
    LateArrivals late;
    LeastDelay rtt;
    LeastDelay one_way;
    DelayJitter jitter;
    std::optional<std::uint32_t> one_way_us;  // the first one, whatever the clocks differ by
    Instant first_sent_at{0};
    Instant sent_at{0};
    bool near = false;     // does not pass the line; once and for all
    Duration queueing{0};  // that the latest report showed
    Instant reported_at{0};
    std::uint32_t largest = 0;
    std::uint32_t received = 0;
    std::uint32_t received_bytes = 0;
    std::uint32_t ect = 0;
    std::uint32_t ce = 0;
    std::uint32_t unmarkable =
        0;                      // that arrived and are in neither: where the network erases marks
    std::uint64_t covered = 0;  // datagrams up to the newest reported one
    std::uint64_t counted = 0;  // of those: believed to have arrived
    std::uint64_t counted_bytes = 0;  // likewise
    std::uint64_t host_dropped = 0;   // covered, and believed to have found the peer's socket full
    std::uint16_t host_drops = 0;
    std::uint32_t grant = UINT32_MAX;
    std::size_t datagram_bytes = 1;  // of the longest train's
    Instant asked_at{0};
    bool asked = false;
  };

  void measure_rate(Link& at, const Departure& departure, const Arrivals& arrivals, Sample& sample);
  std::uint32_t take_marks(Link& at, const Arrivals& arrivals, std::uint32_t received) const;
  std::uint64_t take_host_drops(Link& at, const Arrivals& arrivals) const;
  Duration queueing(Instant now, const Link& at) const;
  Duration jitter() const;
  void judge_nearness(Link& at);
  void write_off_stale(Instant now);
  void govern(Link& at, const Sample& sample) const;
  bool awaits_first_report(Instant now) const;
  void note_limited() { limited_until_ = delivered_ + std::max<std::uint64_t>(in_flight_, 1); }
  bool full() const { return in_flight_ >= pace_.in_flight_bytes; }
  bool is_stuck() const { return held_back_ && full(); }
  Duration stuck_for() const { return 3 * std::max(rtt_, questions_.least); }
  Duration patience() const;
  // So much of the past may still be sent.
  Duration catch_up() const;
  Duration time_of(std::size_t bytes) const {
    const double ns_per_byte = 8e9 / pace().bits_per_second;
    return Duration(static_cast<std::int64_t>(static_cast<double>(bytes) * ns_per_byte));
  }
  void spend(Instant now, std::size_t bytes);
  void take_pace();

  // Unanswered ones that mean silence; fewer may be lost.
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
  std::uint64_t limited_until_ = 0;  // what is sent before so much was delivered
  bool held_back_ = false;
  int asks_ = 0;
  Instant heard_at_{0};
  Instant written_off_at_{0};
};

}  // namespace leeway::congestion
