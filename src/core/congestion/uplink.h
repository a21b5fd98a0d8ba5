// One node's view of its process's uplink bundle. The nodes of further lanes (Options::lanes) share
// the bundle, so a process takes one share of the path, however many sockets it has.
//
// All lanes have one controller, one pace and one window together. A link goes from one lane to one
// peer, because each lane numbers its own datagrams and gets its own reports. Lanes that wait send
// in turn, one batch each.
//
// Lanes have threads of their own, so a lock protects what they share; a single node never takes
// the lock. Lanes may call with times out of order; each call then uses the latest time so far.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "congestion/uplink_bundle.h"

namespace leeway::congestion {

class Uplink {
 public:
  // Makes the uplink of a single node, until further lanes share it.
  explicit Uplink(std::unique_ptr<Controller> controller);
  // Makes the uplink of a further lane, which shares the bundle of `first`. `first` must not be
  // null, and no other thread may use it meanwhile.
  explicit Uplink(Uplink* first);
  // Writes off this lane's datagrams in flight.
  ~Uplink();
  Uplink(const Uplink&) = delete;
  Uplink& operator=(const Uplink&) = delete;

  // Sets `wake`, which another lane's thread calls, under the lock, when data that this lane held
  // back may leave earlier than next_wake() said. So `wake` must not call any uplink.
  void wake_by(std::function<void()> wake);

  // As in UplinkBundle, but with this node's slots in place of links.
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

  // Returns the bundle without a lock, so call it only while no other lane is in use.
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
  std::vector<std::size_t> links_;  // the bundle's link of each slot; kNoLink if it has none
};

}  // namespace leeway::congestion
