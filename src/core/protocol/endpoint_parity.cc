// Parity: packets from which a receiver computes losses of the first pass instead of asking for
// them (WIRE 2.10). It is worth its bytes where a round trip takes longer than they do. Flows of up
// to limits::kEagerPackets packets leave in copies instead (WIRE 2.12).
#include <cmath>

#include "protocol/coding.h"
#include "protocol/endpoint.h"

namespace leeway::protocol {

// Called before each datagram of the first pass. Chooses the number of copies before the first
// packet, and starts another copy when one has left and another follows.
void Endpoint::begin_copy(Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (flow.begun() == 0 &&
      may_be_copied(state_.config, round.plan->phase(kind), kind, flow.packets))
    flow.copies = copies_for(state_.config.size, flow, state_.links[peer].path());
  if (!flow.cursor.exhausted() || flow.copies_over + 1 == flow.copies) return;
  ++flow.copies_over;
  flow.cursor = order_.cursor(round, kind, peer, flow.grid);
}

void Endpoint::append_parity(Instant now, Rank peer, Round& round, FlowKind kind,
                             TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  const std::uint32_t number = flow.parities_sent++;
  const MutableByteSpan scratch = out.scratch(state_.config.datagram_bytes);
  const Payload payload =
      round.client->parity(kind, peer, wire::CodeGrid(flow.packets).parity(number),
                           scratch.subspan(wire::kDataHeaderBytes));
  wire::DataHeader header = header_in(round, kind, flow);
  header.index.value = header.position.value = flow.packets + number;
  header.goes_on = flow.parities_sent < flow.parities;
  write_data(now, peer, round, header, payload, scratch, out);
  ++state_.counters.parity_sent;
}

void Endpoint::accept_parity(Instant now, Round& round, Rank from, const wire::DataHeader& header,
                             ByteSpan payload) {
  ++state_.counters.parity_received;
  ReceiveFlow& flow = round.receive(header.kind, from);
  if (flow.finished || round.phase(header.kind).settled) {
    ++state_.counters.parity_unused;
    return;
  }
  if (std::isnan(flow.weight)) flow.weight = header.weight;
  if (!recovery_.on_parity(round, from, header, payload)) state_.refuse_plan(from);
  after_arrival(now, round, from, header);
}

}  // namespace leeway::protocol
