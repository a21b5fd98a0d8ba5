// Asks all ranks how far they are, when an operation stalls: for a rank that it exchanges no
// packets with (WIRE 2.9), or because ranks mean different operations. Reports tell which rank has
// not opened it, and which one means another.
#pragma once

#include "protocol/endpoint_state.h"

namespace leeway::protocol {

class Inquiry {
 public:
  explicit Inquiry(EndpointState& state) : state_(state) {}

  // The collective is to ask all ranks if it is still open after some time-outs.
  void arm(Instant now, Round& round);
  // It is time to ask (Round::inquire_at).
  void on_time(Instant now, Round& round);

  // A peer that has ended the operation well, although it owed this rank all of its packets, meant
  // another operation. That peer no longer says which one. Returns true if another rank, which
  // waits for this one in that operation, may still say it.
  bool may_mean_another(const Round& round, FlowKind kind, Rank peer) const;
  void ask_what_they_mean(Instant now, Round& round, FlowKind kind, Rank peer);

 private:
  bool probe_present();

  EndpointState& state_;
};

}  // namespace leeway::protocol
