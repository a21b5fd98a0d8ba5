// Receives parity (WIRE 2.10): lays each parity that is of use in the place of a missing packet,
// and has missing packets computed once all places of their code are taken.
#pragma once

#include "protocol/endpoint_state.h"

namespace leeway::protocol {

class Recovery {
 public:
  explicit Recovery(EndpointCounters& counters) : counters_(counters) {}

  // Takes in a parity of an open flow. Returns false if it does not have the planned length.
  bool on_parity(Round& round, Rank from, const wire::DataHeader& header, ByteSpan payload);
  // Moves a parity, whose bytes are `payload`, to another missing packet of its code, because the
  // packet `index` that it covered has come.
  void move(Round& round, FlowKind kind, Rank from, PacketIndex index, ByteSpan payload);
  // Computes the missing packets of a code whose places all hold a packet or a parity. `last` is a
  // parity that has just come, if any, and `last_in` its place. Returns false if `last` does not
  // have the planned length.
  bool recover(Round& round, FlowKind kind, Rank from, std::uint32_t code, ByteSpan last = {},
               PacketIndex last_in = {});

 private:
  bool place(Round& round, FlowKind kind, Rank from, wire::ParityPlace parity, ByteSpan payload);

  EndpointCounters& counters_;
};

}  // namespace leeway::protocol
