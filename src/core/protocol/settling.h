// Ends flows, phases and operations (README.md, steps 4 and 5), and keeps the failures that reports
// list. Other parts find out that something is over; only this part counts what is still open.
#pragma once

#include "protocol/endpoint_state.h"
#include "protocol/failures.h"

namespace leeway::protocol {

class Settling {
 public:
  explicit Settling(EndpointState& state) : state_(state) {}

  // Ends a flow of which the receiver wants no more.
  void settle_send(Round& round, FlowKind kind, Rank peer);
  // Ends an open flow that is complete, or whose rest is given up.
  void finish_receive(Instant now, Round& round, FlowKind kind, Rank peer);
  // Settles phases into which no flow is open. Lets the caller go, and ends the round, if nothing
  // is left to do.
  void advance(Instant now, Round& round);

  // Ends the round with this result. Tells peers of a failure, and of the rank that it names.
  void finish(Instant now, Round& round, const Status& status, const Blame& blame = {});
  // Fails the round: a collective now, a message one tick later, so that its peer can be told
  // before.
  void doom(Instant now, Round& round, const Status& status, const Blame& blame);
  // Ends an exact operation that failed at a peer (Round::told), because it cannot go on without
  // that peer.
  void end_as_told(Instant now, Round& round);
  void end_stand_in(Instant now, Round& round, const Status& status, const Blame& blame);
  // Fails the open rounds that `which` selects.
  void cancel(Instant now, const Status& status, Cancelled which);

  // Call it when the peer has closed this operation: it wants nothing more from us and will send us
  // nothing more.
  void on_peer_left_round(Instant now, Round& round, Rank from);
  void end_abandoned(Instant now, Round& round, Rank peer);

  void on_deadline(Instant now, Round& round);
  // Settles a lossy phase, whose deadline has passed, with the packets that are there.
  void cut_phase(Instant now, Round& round, FlowKind kind);
  // Fails the messages with this peer whose deadlines have passed, also those that do not talk yet.
  void expire_messages(Instant now, Rank peer);

  const Failures& failures() const { return failures_; }

 private:
  bool owes(const Round& round, Rank peer) const;
  bool may_run_ahead(const Round& round) const;
  void settle_phase(Instant now, Round& round, FlowKind kind);
  void tell_failure(const Round& round, StatusCode code, const Blame& blame);
  void give_message_up(const Round& round);
  void tell_mismatch(const Round& round);
  void end(Round& round);

  EndpointState& state_;
  Failures failures_;
};

}  // namespace leeway::protocol
