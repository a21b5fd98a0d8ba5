// Ends flows, phases and operations (README.md, steps 4 and 5), and keeps the failures that reports
// tell. Other parts find out that something is over. Only this one counts what is still open.
#pragma once

#include "protocol/endpoint_state.h"
#include "protocol/failures.h"

namespace leeway::protocol {

class Settling {
 public:
  explicit Settling(EndpointState& state) : state_(state) {}

  // The receiver wants no more of this flow.
  void settle_send(Round& round, FlowKind kind, Rank peer);
  // The open flow is complete, or the rest of it is given up.
  void finish_receive(Instant now, Round& round, FlowKind kind, Rank peer);
  // Settles phases into which no flow is open. Lets the caller go, and ends the round, if nothing
  // is left to do.
  void advance(Instant now, Round& round);

  // Ends the round with this result. Tells peers of a failure, and which rank it names.
  void finish(Instant now, Round& round, const Status& status, const Blame& blame = {});
  // Fails the round. A message fails a little later, once its peer could be told.
  void doom(Instant now, Round& round, const Status& status, const Blame& blame);
  // Ends an exact operation, which cannot go on without the peer at which it failed.
  void end_as_told(Instant now, Round& round);
  void end_stand_in(Instant now, Round& round, const Status& status, const Blame& blame);
  // Fails every open round.
  void cancel_all(Instant now, const Status& status);

  // The peer has closed this operation: it wants nothing more from us and will send us nothing
  // more.
  void on_peer_left_round(Instant now, Round& round, Rank from);
  void end_abandoned(Instant now, Round& round, Rank peer);

  void on_deadline(Instant now, Round& round);
  // The deadline of a lossy phase has passed. Settles it with the packets that are there.
  void cut_phase(Instant now, Round& round, FlowKind kind);
  // Every message has its own deadline, even one that is not among the oldest of its stream yet.
  void expire_messages(Instant now, Rank peer);

  const Failures& failures() const { return failures_; }

 private:
  bool owes(const Round& round, Rank peer) const;
  bool may_run_ahead(const Round& round) const;
  void settle_phase(Instant now, Round& round, FlowKind kind);
  void tell_failure(const Round& round, StatusCode code, const Blame& blame);
  void give_message_up(const Round& round);
  void end(Round& round);

  EndpointState& state_;
  Failures failures_;
};

}  // namespace leeway::protocol
