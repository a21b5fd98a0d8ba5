// The uplink as one node sees it: the bundle of its process, which the nodes of further lanes
// (Options::lanes) share. So a process has one share of a line, however many sockets it has.
//
// One controller, one pace and one window are all lanes'. A link is one lane's to one peer: each
// lane numbers its datagrams and has reports of its own. Lanes that wait take turns, a train each.
//
// Lanes have threads of their own, so what they share is behind a lock, which a node alone never
// takes. Times that lanes read from one clock may come in another order than they were read in;
// the later one counts.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "congestion/uplink_bundle.h"

namespace leeway::congestion {

class Uplink {
 public:
  // Of a node alone, until others share it.
  explicit Uplink(std::unique_ptr<Controller> controller);
  // Of a further lane, while nobody else speaks to `first`, which is there.
  explicit Uplink(Uplink* first);
  // Nothing that this lane sent is waited for any more.
  ~Uplink();
  Uplink(const Uplink&) = delete;
  Uplink& operator=(const Uplink&) = delete;

  // Called, by whoever speaks to another lane's uplink, when data that this one held back may leave
  // earlier than next_wake() said. It must not speak to any uplink.
  void wake_by(std::function<void()> wake);

  // As UplinkBundle's, with this node's slots in place of links.
  void make_link(std::size_t slot, std::size_t datagrams);
  bool open(Instant now);
  std::size_t quantum_bytes() const;
  void note_held_back();
  void note_idle();
  void on_sent(Instant now, std::size_t slot, const Sent& sent, double share = 1);
  void on_group_sent(Instant now, std::size_t bytes);
  bool asks(Instant now, std::size_t slot) const;
  void on_asked(Instant now, std::size_t slot);
  std::uint32_t datagrams_granted(std::size_t slot) const;
  void on_report(Instant now, std::size_t slot, const Arrivals& arrivals);
  void begin_anew(Instant now, std::size_t slot);
  void on_wake(Instant now);
  Instant next_wake();
  Pace pace() const;
  bool all_far() const;
  std::uint64_t in_flight_bytes() const;
  LinkDelay delay(std::size_t slot) const;
  double noise() const;

  // While no other lane is in use.
  const UplinkBundle& bundle() const;

 private:
  struct Shared;
  class Guard;
  class Opening;

  std::size_t link_of(std::size_t slot) const { return links_[slot]; }
  void take_turn();
  Instant turn_at() const;

  const std::shared_ptr<Shared> shared_;
  const std::size_t lane_;
  std::vector<std::size_t> links_;  // of the bundle, by slot; kNoLink: none
};

}  // namespace leeway::congestion
