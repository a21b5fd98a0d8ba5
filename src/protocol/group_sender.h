// Multicast: first passes whose packets are the same for all receivers go out once for all of them.
// Knows who takes part, how much may be sent and who holds the others up; Endpoint sends.
//
// What one receiver needs alone (a copy because it does not hear, came late or fell behind, a
// repair, an END) it gets as without multicast.
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
  // `links` by peer; they outlive this. Off: the transport has no multicast.
  GroupSender(bool on, const std::vector<Link>& links) : on_(on), links_(links) {}

  bool on() const { return on_; }
  // A receiver that is to get a flow alone may hear it all the same, sent to every rank for others.
  bool may_have_heard(const PhasePlan& plan) const { return on_ && plan.same_for_all; }

  // Multicast datagrams are numbered apart, by one count for all receivers (WIRE 1.5).
  std::uint32_t take_sequence() { return ++sent_; }
  std::uint32_t sent() const { return sent_; }

  // The receivers that hear multicast share a pass, if there are several; whether they do.
  bool form(PhaseState& phase, const PhasePlan& plan) const;
  // The peer goes on alone, from where the pass is.
  static void leave(PhaseState& phase, Rank peer);

  // As many datagrams as all members have room for (WIRE 3.10), or one of them.
  std::uint32_t credit(const Round& round, FlowKind kind) const;
  std::uint32_t credit(const Round& round, FlowKind kind, Rank peer) const;

  // There is no credit: when the others will have waited long enough.
  Instant wait(Instant now, Round& round, FlowKind kind);
  // They have, by now; else when they will have. Infinite future: nobody waits.
  Instant patience_ends(const Round& round, FlowKind kind) const;

  // A pass without credit asks for reports after a time-out.
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
  std::uint32_t sent_ = 0;  // the number of the latest
  bool probe_due_ = false;
  Instant probe_at_ = Instant::infinite_future();
};

}  // namespace leeway::protocol
