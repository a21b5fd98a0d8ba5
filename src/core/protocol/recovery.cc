#include "protocol/recovery.h"

#include "base/contracts.h"

namespace leeway::protocol {

bool Recovery::on_parity(Round& round, Rank from, const wire::DataHeader& header,
                         ByteSpan payload) {
  ReceiveFlow& flow = round.receive(header.kind, from);
  const std::uint32_t number = header.index.value - flow.packets;
  if (flow.parity == nullptr || !flow.parity->is_first(number)) {
    ++counters_.parity_unused;
    return true;
  }
  return place(round, header.kind, from, flow.parity->grid().parity(number), payload);
}

void Recovery::move(Round& round, FlowKind kind, Rank from, PacketIndex index, ByteSpan payload) {
  ParityLedger& ledger = *round.receive(kind, from).parity;
  LEEWAY_ASSERT(ledger.covers(index));
  const wire::ParityPlace parity = ledger.parity_at(index);
  ledger.uncover(index);
  place(round, kind, from, parity, payload);
}

// Lays the parity in the place of a missing packet. If that was the last empty place of the code,
// computes the code's missing packets. Returns false if the parity does not have the planned
// length.
bool Recovery::place(Round& round, FlowKind kind, Rank from, wire::ParityPlace parity,
                     ByteSpan payload) {
  ReceiveFlow& flow = round.receive(kind, from);
  const auto at = flow.parity->cover(parity, flow.arrived);
  if (!at) {
    ++counters_.parity_unused;
    return true;
  }
  const bool full = flow.parity->places(parity.code, flow.arrived).full;
  const bool used = full ? recover(round, kind, from, parity.code, payload, *at)
                         : round.client->hold_parity(kind, from, *at, payload);
  if (!used) flow.parity->uncover(*at);
  return used;
}

bool Recovery::recover(Round& round, FlowKind kind, Rank from, std::uint32_t code, ByteSpan last,
                       PacketIndex last_in) {
  ReceiveFlow& flow = round.receive(kind, from);
  const ParityLedger::Places places = flow.parity->places(code, flow.arrived);
  if (!places.full || places.covered == 0) return true;
  const wire::CodeGrid& grid = flow.parity->grid();
  const RoundClient::CodedPackets packets{.code = code,
                                          .rows = std::span(places.rows).first(places.count),
                                          .last_at = last_in.value / grid.codes(),
                                          .last = last};
  if (!round.client->recover(kind, from, packets)) return false;
  for (std::uint32_t n = 0; n < places.count; ++n) {
    if (places.rows[n] == ParityLedger::kPresent) continue;
    const PacketIndex index = grid.packet(code, n);
    flow.parity->uncover(index);
    flow.arrived.set(index.value);
  }
  flow.arrived_count += places.covered;
  LEEWAY_ASSERT(flow.arrived_count <= flow.packets);
  flow.repaired += places.covered;
  counters_.recovered += places.covered;
  return true;
}

}  // namespace leeway::protocol
