// Multicast: first passes whose packets are the same for all receivers go out once for all of them.
// This class knows the members, their credit and which ones hold the others up; Sender sends.
//
// Other datagrams go out by unicast: ENDs, repairs, and the flow of a receiver that does not hear
// multicast, came late or fell behind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "protocol/link.h"
#include "protocol/round.h"

namespace leeway::protocol {

class GroupSender {
 public:
  // `on` is false if the transport has no multicast. `links`, by peer, must outlive this object.
  GroupSender(bool on, const std::vector<Link>& links) : on_(on), links_(links) {}

  bool on() const { return on_; }
  // Returns true if a receiver that gets this phase by unicast may also have heard the phase's
  // packets, because they are multicast to others.
  bool may_have_heard(const PhasePlan& plan) const { return on_ && plan.same_for_all; }

  // Multicast datagrams are numbered apart, by one count for all receivers (WIRE 1.5).
  std::uint32_t take_sequence() { return ++sent_; }
  std::uint32_t sent() const { return sent_; }

  // Forms a shared pass of the receivers that hear multicast, if there are at least two. Returns
  // true if it did.
  bool form(PhaseState& phase, const PhasePlan& plan) const;
  // Takes the peer out of the shared pass. It gets the rest of the flow by unicast.
  static void leave(PhaseState& phase, Rank peer);

  // Returns the number of datagrams for which all members have room (WIRE 3.10). With `peer`,
  // returns the number for which this one member has room.
  std::uint32_t credit(const Round& round, FlowKind kind) const;
  std::uint32_t credit(const Round& round, FlowKind kind, Rank peer) const;

  // Call it when the pass has no credit. Arms a probe if a member's window is full. Returns
  // patience_ends().
  Instant wait(Instant now, Round& round, FlowKind kind);
  // Returns when members that have no credit must leave the pass, so that the others need not wait
  // longer; infinite future if the pass has credit.
  Instant patience_ends(const Round& round, FlowKind kind) const;

  // Returns when to multicast a probe because a pass has no credit; infinite future if never.
  Instant probe_at() const { return probe_at_; }
  bool probe_due() const { return probe_due_; }
  void probe() { probe_due_ = on_; }
  void on_probe_time() {
    probe_at_ = Instant::infinite_future();
    probe_due_ = true;
  }
  void on_probed() { probe_due_ = false; }
  void stop_probing() {
    probe_due_ = false;
    probe_at_ = Instant::infinite_future();
  }

 private:
  std::uint32_t window_left(Rank peer) const;
  Duration slowest_timeout(const PhaseState& phase) const;

  bool on_;
  const std::vector<Link>& links_;
  std::uint32_t sent_ = 0;  // number of the latest datagram
  bool probe_due_ = false;
  Instant probe_at_ = Instant::infinite_future();
};

}  // namespace leeway::protocol
