// Parity: packets from which a receiver computes losses of the first pass instead of asking for
// them (WIRE 2.10). It is worth its bytes where a round trip takes longer than they do. Flows of up
// to limits::kEagerPackets packets leave in copies instead (WIRE 2.12).
#include <algorithm>
#include <cmath>

#include "erasure/cauchy.h"
#include "protocol/endpoint.h"

namespace leeway::protocol {

// Number of parities that makes the operation shortest.
//
// Receivers ask for packets that are still missing after the parity, pass by pass, until none is
// missing anywhere. The operation waits for all of that, and the link idles for a round trip and a
// quiet time in each pass. The number minimises the sum of three times: that of the parities, that
// of repairs, and the idle time. All are counted in datagrams of this link.
std::uint32_t Endpoint::parities_for(Instant now, const Round& round, FlowKind kind,
                                     Rank peer) const {
  const SendFlow& flow = round.send(kind, peer);
  if (!may_be_coded(round, kind, flow.packets)) return 0;
  constexpr double kRoundTripsAPass = 1.25;
  const Path& path = links_[peer].path();
  const double loss = path.loss_at_most();
  if (loss < limits::kCodedLossMin) return 0;
  const wire::CodeGrid grid(flow.packets);
  const double flows = static_cast<double>(config_.size) * (config_.size - 1);
  // Packets leave in permuted order, so a burst falls on all codes: each has its share of it.
  const double dispersion = 1.0 + (path.loss_dispersion() - 1.0) / grid.codes();
  const double idle_a_pass = kRoundTripsAPass * path.sent_in_round_trip(now);
  // Packets that a receiver asked for early were sent again. It has not asked for those of the last
  // round trip. Before them, it has not asked for those of an incomplete step (ChunkWatch::kStep)
  // and those that may still be overtaken (kOvertaken).
  double in_doubt = 1.0;
  if (flow.aside > 0) {
    const double unasked =
        path.sent_in_round_trip(now) + ChunkWatch::kStep + ChunkWatch::kOvertaken;
    in_doubt = std::min(1.0, unasked / flow.packets);
  }
  const double missing = loss * (in_doubt + loss * (1.0 - in_doubt));
  const auto cost = [&](std::uint32_t rows) {
    // Number of codes of this flow that fall short. Such a code misses one packet more than it has
    // parities, or the average number of a code's losses if that is larger.
    const std::uint32_t size = grid.size(0);
    const double lost = (size * missing + rows * loss) / (size + rows);  // parities are lost, too
    const double codes = grid.codes() * erasure::shortfall(size, rows, lost, dispersion);
    const double again = codes * std::max(rows + 1.0, size * missing) / (1.0 - loss);
    const double passes = std::min(flows * codes, 1.0) *
                          (1.0 + std::log(std::max(flows * again, 1.0)) / -std::log(loss));
    return rows * grid.codes() + again + passes * idle_a_pass;
  };
  std::uint32_t best = 0;
  double least = cost(0);
  for (std::uint32_t rows = 1; rows <= limits::kCodeParitiesMax && rows * grid.codes() < least;
       ++rows) {
    const double one = cost(rows);
    if (one >= least) continue;
    best = rows;
    least = one;
  }
  return best * grid.codes();
}

bool Endpoint::may_be_copied(const Round& round, FlowKind kind, std::uint32_t packets) const {
  const auto peers = static_cast<std::uint32_t>(config_.size - 1);
  return config_.paced && kind != FlowKind::point &&
         round.plan->phase(kind).delivery == Delivery::Kind::exact &&
         packets <= limits::kEagerPackets && packets * peers <= limits::kCopiedPacketsMax;
}

// Number of copies of a short flow that leave at once. Parity would be longer than they are. One
// operation in twenty may have to ask for a packet all of whose copies are lost
// (limits::kCopiesShortfall).
std::uint32_t Endpoint::copies_for(const Round& round, FlowKind kind, Rank peer) const {
  const SendFlow& flow = round.send(kind, peer);
  if (!may_be_copied(round, kind, flow.packets)) return 1;
  const double loss = std::min(links_[peer].path().loss_at_most(), 0.5);
  if (loss < limits::kCodedLossMin) return 1;
  const double flows = static_cast<double>(config_.size) * (config_.size - 1);
  const double copies =
      std::log(limits::kCopiesShortfall / (flows * flow.packets)) / std::log(loss);
  return std::clamp(static_cast<std::uint32_t>(std::ceil(copies)), 1u, limits::kCopiesMax);
}

// Called before each datagram of the first pass. Chooses the number of copies before the first
// packet, and starts another copy when one has left and another follows.
void Endpoint::begin_copy(Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (flow.begun() == 0) flow.copies = copies_for(round, kind, peer);
  if (!flow.cursor.exhausted() || flow.copies_over + 1 == flow.copies) return;
  ++flow.copies_over;
  flow.cursor = make_cursor(round, kind, peer, flow.grid);
}

void Endpoint::append_parity(Instant now, Rank peer, Round& round, FlowKind kind,
                             TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  const std::uint32_t number = flow.parities_sent++;
  const MutableByteSpan scratch = out.scratch(config_.datagram_bytes);
  const Payload payload =
      round.client->parity(kind, peer, wire::CodeGrid(flow.packets).parity(number),
                           scratch.subspan(wire::kDataHeaderBytes));
  wire::DataHeader header = header_in(round, kind, flow);
  header.index.value = header.position.value = flow.packets + number;
  header.goes_on = flow.parities_sent < flow.parities;
  write_data(now, peer, round, header, payload, scratch, out);
  ++counters_.parity_sent;
}

void Endpoint::accept_parity(Instant now, Round& round, Rank from, const wire::DataHeader& header,
                             ByteSpan payload) {
  ++counters_.parity_received;
  ReceiveFlow& flow = round.receive(header.kind, from);
  if (flow.finished || round.phase(header.kind).settled) {
    ++counters_.parity_unused;
    return;
  }
  if (std::isnan(flow.weight)) flow.weight = header.weight;
  take_parity(round, from, header, payload);
  after_arrival(now, round, from, header);
}

void Endpoint::take_parity(Round& round, Rank from, const wire::DataHeader& header,
                           ByteSpan payload) {
  ReceiveFlow& flow = round.receive(header.kind, from);
  const std::uint32_t number = header.index.value - flow.packets;
  if (flow.parity == nullptr || !flow.parity->is_first(number)) {
    ++counters_.parity_unused;
  } else if (!place_parity(round, header.kind, from, flow.parity->grid().parity(number), payload)) {
    refuse_plan(from);
  }
}

// A packet came that parity covered. The parity moves to another missing packet of its code.
void Endpoint::move_parity(Round& round, FlowKind kind, Rank from, PacketIndex index,
                           ByteSpan payload) {
  ParityLedger& ledger = *round.receive(kind, from).parity;
  const wire::ParityPlace parity = ledger.parity_at(index);
  ledger.uncover(index);
  place_parity(round, kind, from, parity, payload);
}

// Returns false if the parity does not have the planned length.
bool Endpoint::place_parity(Round& round, FlowKind kind, Rank from, wire::ParityPlace parity,
                            ByteSpan payload) {
  ReceiveFlow& flow = round.receive(kind, from);
  const auto place = flow.parity->cover(parity, flow.arrived);
  if (!place) {
    ++counters_.parity_unused;
    return true;
  }
  const bool full = flow.parity->places(parity.code, flow.arrived).full;
  const bool used = full ? recover(round, kind, from, parity.code, payload, *place)
                         : round.client->hold_parity(kind, from, *place, payload);
  if (!used) flow.parity->uncover(*place);
  return used;
}

// Computes the missing packets of a code all of whose places are taken. Returns false if the last
// parity does not have the planned length.
bool Endpoint::recover(Round& round, FlowKind kind, Rank from, std::uint32_t code, ByteSpan last,
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
  flow.repaired += places.covered;
  counters_.recovered += places.covered;
  return true;
}

}  // namespace leeway::protocol
