// When a collective stalls, asks all ranks how far they are: the collective may wait for a rank
// with which this rank exchanges no packets (WIRE 2.9), or ranks may mean different operations.
// Reports then tell which rank has not opened the collective, and which rank means another one.
#pragma once

#include "protocol/endpoint_state.h"

namespace leeway::protocol {

class Inquiry {
 public:
  explicit Inquiry(EndpointState& state) : state_(state) {}

  // Makes the collective ask all ranks if it is still open after some time-outs.
  void arm(Instant now, Round& round);
  // Asks all ranks; call it at Round::inquire_at.
  void on_time(Instant now, Round& round);

  // Call it for a peer that has closed the operation without a failure, although it owed this rank
  // all of its packets. Such a peer meant another operation, but its reports no longer say which
  // one. Returns true if a third rank, which still waits in that operation, may say which one.
  bool may_mean_another(const Round& round, FlowKind kind, Rank peer) const;
  void ask_what_they_mean(Instant now, Round& round, FlowKind kind, Rank peer);

 private:
  EndpointState& state_;
};

}  // namespace leeway::protocol
