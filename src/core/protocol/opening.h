// Opens operations: lays out their flows, announces them to peers, and starts waiting messages when
// it is their turn to talk (peer_messages.h).
#pragma once

#include "protocol/inquiry.h"
#include "protocol/liveness.h"
#include "protocol/packet_order.h"

namespace leeway::protocol {

class Opening {
 public:
  Opening(EndpointState& state, const PacketOrder& order, Inquiry& inquiry, Liveness& liveness)
      : state_(state), order_(order), inquiry_(inquiry), liveness_(liveness) {}

  // As Endpoint::open_round().
  Round* open(Instant now, const RoundPlan& plan, RoundClient& client);
  // As Endpoint::reopen_round().
  void reopen(Instant now, Round& round, const RoundPlan& plan);
  // Announces the round to peers. Begins to send and to wait.
  void announce(Instant now, Round& round);
  // Removes rounds that have ended, and starts messages that may talk now.
  void reap_ended(Instant now);
  // Returns when the current busy period began, or, if no round is open, when the last one did. A
  // busy period begins when a round is opened while no other round is open.
  Instant busy_since() const { return busy_since_; }

 private:
  void start_towards(Round& round, Rank peer);
  void start_messages(Instant now);
  void set_up_flows(Round& round);
  void set_up_flows(Round& round, FlowKind kind);
  void set_up_send(Round& round, FlowKind kind, Rank peer);
  void set_up_receive(Round& round, FlowKind kind, Rank peer);

  EndpointState& state_;
  const PacketOrder& order_;
  Inquiry& inquiry_;
  Liveness& liveness_;
  Instant busy_since_{0};
};

}  // namespace leeway::protocol
