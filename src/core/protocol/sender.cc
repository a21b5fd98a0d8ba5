#include "protocol/sender.h"

#include <algorithm>

#include "base/contracts.h"
#include "protocol/coding.h"

namespace leeway::protocol {

bool Sender::poll(Instant now, TrainBuffer& out) {
  while (const auto next = state_.outbox.next_data()) {
    state_.start_train(*next, out);
    const bool filled =
        *next == kEveryRank ? fill_from_group(now, out) : fill_from_link(now, *next, out);
    if (!filled) continue;
    state_.outbox.queue_data(*next);  // behind the others
    return true;
  }
  return false;
}

// If this rank is not paced, spread goes before reduce: spread packets were just summed and are in
// the cache. If it is paced, reduce goes first, because every rank waits for the rank whose
// contributions come last (docs/measurements/protocol.md).
bool Sender::fill_from_link(Instant now, Rank peer, TrainBuffer& out) {
  constexpr int kLast = wire::kFlowKinds - 1;
  for (Round* round : state_.rounds.with(peer)) {
    for (int k = 0; k < wire::kFlowKinds; ++k) {
      const auto kind = static_cast<FlowKind>(state_.config.paced ? k : kLast - k);
      if (round->phase(kind).sends_open == 0 || !round->send(kind, peer).open()) continue;
      if (fill_from_flow(now, peer, *round, kind, out)) return true;
    }
  }
  return false;
}

bool Sender::fill_from_flow(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  if (flow.pass_over || flow.grouped) return false;
  Link& link = state_.links[peer];
  std::uint32_t credit = link.path().credit();
  if (flow.first_pass() && !state_.gate_open(round, peer)) {  // WIRE 2.4: eager packets only
    credit = std::min(credit, eager_credit(flow, peer));
    const bool asks =
        kind == FlowKind::point || state_.group.may_have_heard(round.plan->phase(kind));
    if (credit == 0 && asks && flow.end_at == Instant::infinite_future()) {
      flow.end_at = now + link.rtt().timeout(flow.end_tries++);
      state_.timers.arm_link(peer, flow.end_at);
    }
  } else if (credit == 0) {
    link.path().note_blocked();
    if (link.probe_at == Instant::infinite_future()) {
      link.probe_at = now + link.rtt().timeout(link.probe_tries);
      state_.timers.arm_link(peer, link.probe_at);
    }
  }
  // A train holds one copy of a flow. The next copy leaves behind the trains to other destinations
  // (WIRE 2.12).
  if (credit > 0 && flow.first_pass()) begin_copy(round, kind, peer);
  while (credit > 0 && out.has_room()) {
    const bool again = !flow.first_pass() || flow.repairs_aside();
    const PacketPosition position = again ? flow.repair_position : flow.cursor.position();
    const auto index =
        again ? flow.next_repair(link.path().delivered_fraction()) : flow.cursor.next();
    if (index && again) {
      const std::uint16_t attempt = flow.first_pass() ? flow.aside : flow.pass;
      append_data(now, peer, round, kind, peer, {*index, position, *index, attempt}, out);
    } else if (index) {
      if (flow.left.size() != 0) flow.left.set(index->value);
      if (position.value + 1 == flow.packets)
        flow.parities =
            parities_for(now, state_.config.size, round.plan->phase(kind), flow, link.path());
      const PacketIndex ahead = flow.cursor.peek().value_or(*index);
      append_data(now, peer, round, kind, peer, {*index, position, ahead}, out);
    } else if (flow.first_pass() && flow.parities_sent < flow.parities) {
      append_parity(now, peer, round, kind, out);
    } else {
      break;
    }
    note_sent(round, kind, peer, 1);
    --credit;
  }
  const bool handed_out = flow.wanted_count == 0 && (!flow.first_pass() || flow.passed());
  if (handed_out) end_pass(now, peer, round, kind, out);
  return !out.empty();
}

// Returns how many more packets of the flow may go to a peer that has not opened the operation.
// Such a peer keeps limits::kEagerPackets packets of one flow, and limits::kEarlySlotsPerPeer of
// all flows of this rank.
std::uint32_t Sender::eager_credit(const SendFlow& flow, Rank peer) const {
  std::uint32_t kept = 0;
  for (const Round* round : state_.rounds.with(peer)) {
    if (kept >= limits::kEarlySlotsPerPeer) break;
    if (round->ended || state_.gate_open(*round, peer)) continue;
    for (const FlowKind kind : round->plan->active_kinds()) kept += round->send(kind, peer).begun();
  }
  const auto left = [](std::uint32_t limit, std::uint32_t used) {
    return limit - std::min(limit, used);
  };
  // A further copy takes the place of the first one in the peer's early buffer (WIRE 2.4).
  if (flow.copies > 1 && flow.begun() == flow.packets) return limits::kEagerPackets;
  return std::min(left(limits::kEagerPackets, flow.begun()),
                  left(limits::kEarlySlotsPerPeer, kept));
}

// Called before each train of the first pass. Chooses the number of copies before the first packet,
// and starts the next copy when one has left.
void Sender::begin_copy(Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (flow.begun() == 0 &&
      may_be_copied(state_.config, round.plan->phase(kind), kind, flow.packets))
    flow.copies = copies_for(state_.config.size, flow, state_.links[peer].path());
  if (!flow.cursor.exhausted() || flow.copies_over + 1 == flow.copies) return;
  ++flow.copies_over;
  flow.cursor = order_.cursor(round, kind, peer, flow.grid);
}

// Appends one packet of the flow to `receiver`. The datagram goes to `to`, which is that rank or
// kEveryRank.
void Sender::append_data(Instant now, Rank to, Round& round, FlowKind kind, Rank receiver,
                         const Place& place, TrainBuffer& out) {
  const SendFlow& flow = round.send(kind, receiver);
  const MutableByteSpan scratch = out.scratch(state_.config.datagram_bytes);
  const Payload payload = round.client->payload(kind, receiver, place.index, place.ahead,
                                                scratch.subspan(wire::kDataHeaderBytes));
  wire::DataHeader header = header_in(round, kind, flow);
  header.index = place.index;
  header.position = place.position;
  header.attempt = place.attempt;
  const bool last = place.attempt == 0 && place.position.value + 1 == flow.packets;
  header.goes_on = last && (flow.parities > 0 || flow.copies_over + 1 < flow.copies);
  write_data(now, to, round, header, payload, scratch, out);
  if (flow.grid.packet_elements(place.index) < flow.grid.elements_per_packet()) out.close();
  state_.counters.group_sent += to == kEveryRank;
  state_.counters.repairs_sent += place.attempt > 0;
}

void Sender::append_parity(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  LEEWAY_ASSERT(flow.parities_sent < flow.parities);
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

// Returns a header that lacks only the packet's index and position.
wire::DataHeader Sender::header_in(const Round& round, FlowKind kind, const SendFlow& flow) const {
  wire::DataHeader header;
  header.round = round.number;
  header.kind = kind;
  header.codec = round.plan->phase(kind).codec;
  header.attempt = flow.pass;
  header.flow_packets = flow.packets;
  header.weight = flow.weight;
  header.tail = flow.grid.tail();
  header.message_tag = round.plan->message_tag;
  header.opened_below = state_.rounds.opened_below();
  header.settled_below = state_.rounds.settled_below();
  header.tag_digest = round.tag_digest;
  return header;
}

// Writes the header to the front of `scratch`. The payload may lie right behind it.
void Sender::write_data(Instant now, Rank to, Round& round, const wire::DataHeader& header,
                        const Payload& payload, MutableByteSpan scratch, TrainBuffer& out) {
  LEEWAY_ASSERT(wire::kDataHeaderBytes + payload.bytes.size() <= state_.config.datagram_bytes);
  wire::Prefix in_front = state_.prefix(wire::PacketType::data, to, now);
  in_front.payload_summed = state_.config.sums_to(to);
  in_front.asks = to != kEveryRank && state_.links[to].path().take_question();
  wire::encode_data(in_front, header, payload.crc, scratch);
  out.append(wire::kDataHeaderBytes, payload.bytes);
  round.bytes_sent += wire::kDataHeaderBytes + payload.bytes.size();
  ++state_.counters.data_sent;
}

void Sender::note_sent(Round& round, FlowKind kind, Rank peer, std::uint32_t packets) {
  round.send(kind, peer).sent += packets;
  // The data's header (settled_below) tells the peer what the delayed report would tell, so that
  // report need not be sent. But only a report tells that a message was received.
  Link& link = state_.links[peer];
  if (packets == 0 || link.point_unreported) return;
  link.report_at = Instant::infinite_future();
  link.unreported_settles = 0;
}

// Ends the pass with an END behind its last packet, in the same train if it fits. In the first pass
// of a flow of up to limits::kEagerPackets packets, the last packet tells the receiver that the
// pass is over. So where a single copy of control is sent, the END waits for the timer.
void Sender::end_pass(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  LEEWAY_ASSERT(flow.open() && !flow.grouped);
  round.phase(kind).set_pass_over(flow, true);
  const bool leave_to_timer = flow.packets <= limits::kEagerPackets && flow.first_pass() &&
                              state_.links[peer].copies() == 1;
  if (leave_to_timer) {
    flow.end_at = now + state_.links[peer].rtt().timeout(flow.end_tries++);
    state_.timers.arm_link(peer, flow.end_at);
  } else if (!out.empty() && out.fits(wire::kEndBytes) && state_.links[peer].copies() == 1) {
    control_.write_end(now, peer, round, kind, out);
  } else {
    flow.end_due = true;
    state_.outbox.queue_control(peer);
  }
  // The caller may be free to go now. on_wake() tells the caller, so that no callback comes during
  // sending.
  if (!round.done && round.caller_may_go()) state_.timers.arm_round(round, now);
}

// Fills a multicast train: packets that are the same for all receivers go out once
// (group_sender.h).
bool Sender::fill_from_group(Instant now, TrainBuffer& out) {
  for (Round* round : state_.rounds.collectives()) {
    for (int k = wire::kFlowKinds; k-- > 0;) {
      const auto kind = static_cast<FlowKind>(k);
      if (round->phase(kind).group.open() && fill_from_pass(now, *round, kind, out)) return true;
    }
  }
  return false;
}

bool Sender::fill_from_pass(Instant now, Round& round, FlowKind kind, TrainBuffer& out) {
  PhaseState& phase = round.phase(kind);
  GroupPass& group = phase.group;
  std::uint32_t credit = state_.group.credit(round, kind);
  if (credit == 0) {
    state_.timers.arm_round(round, state_.group.wait(now, round, kind));
    state_.timers.arm_group_probe(state_.group.probe_at());
    return false;
  }
  group.blocked_since = Instant::infinite_future();
  std::uint32_t appended = 0;
  for (; credit > 0 && out.has_room(); --credit, ++appended) {
    const PacketPosition position = group.cursor.position();
    const auto index = group.cursor.next();
    if (!index) break;
    const PacketIndex ahead = group.cursor.peek().value_or(*index);
    append_data(now, kEveryRank, round, kind, group.first_member, {*index, position, ahead}, out);
  }
  const bool over = group.cursor.exhausted();
  for (Rank peer = 0; peer < state_.config.size; ++peer) {
    if (!phase.send[peer].grouped) continue;
    note_sent(round, kind, peer, appended);
    // ENDs and repairs are never multicast, so each member's own flow goes on with them.
    if (over) state_.leave_group(round, kind, peer);
  }
  return !out.empty();
}

void Sender::wake_group(Instant now, Round& round, FlowKind kind) {
  const Instant due = state_.group.patience_ends(round, kind);
  if (now < due) return state_.timers.arm_round(round, due);
  round.phase(kind).group.blocked_since = Instant::infinite_future();
  for (Rank peer = 0; peer < state_.config.size; ++peer) {
    if (!round.send(kind, peer).grouped || state_.group.credit(round, kind, peer) > 0) continue;
    if (state_.gate_open(round, peer)) state_.links[peer].group.give_up();
    ++state_.counters.group_left;
    state_.leave_group(round, kind, peer);
  }
  state_.queue_group();
}

void Sender::release(Round& round, FlowKind kind) {
  for (int step = 1; step < state_.config.size; ++step) {
    const Rank peer = static_cast<Rank>((state_.config.self + step) % state_.config.size);
    if (round.send(kind, peer).open()) state_.outbox.queue_data(peer);
  }
  state_.queue_group();
}

void Sender::on_repair(Instant now, Rank from, const wire::Repair& repair, ByteSpan words) {
  ++state_.counters.repair_requests;
  Round* round =
      state_.rounds.find(repair.kind, repair.round, repair.message_tag, from, /*as_sender=*/true);
  // The peer may not know that we gave the collective up, so a report tells the peer.
  if (round == nullptr) {
    if (repair.kind != FlowKind::point && state_.rounds.may_have_given_up(repair.round))
      state_.queue_report(from);
    return;
  }
  if (!round->plan->phase(repair.kind).repairable) return;
  // WIRE 5.5: a peer that asks has opened the operation, so its gate opens. The peer's report that
  // it opened may be lost, and a peer that heard the pass end in multicast to others sends requests
  // and no further report. If the gate stayed shut, we would wait for a report, and the peer for
  // our answer.
  if (repair.kind != FlowKind::point)
    progress_.on_collectives(now, from, repair.round + 1, state_.links[from].peer_settled_below);
  SendFlow& flow = round->send(repair.kind, from);
  switch (flow.take_request(repair, words)) {
    case SendFlow::Request::ignored:
      return;
    case SendFlow::Request::refused:
      return state_.refuse_plan(from);
    case SendFlow::Request::taken:
      break;
  }
  round->phase(repair.kind).set_pass_over(flow, false);
  state_.outbox.queue_data(from);
}

void Sender::wake(Instant now, Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (!flow.open()) return;
  if (!flow.pass_over) return ask_gated(now, round, kind, peer);
  if (now < flow.end_at) return state_.timers.arm_link(peer, flow.end_at);
  flow.end_at = Instant::infinite_future();  // set again when the END is written
  flow.end_due = true;
  state_.outbox.queue_control(peer);
}

// WIRE 5.6: probes a peer while our unicast flow to it waits for a report that it opened the
// operation. The peer may have closed the operation and said so in a report that was lost. Without
// the probe, no datagram would mention the operation again. A peer that has posted many receives
// may not have reported that of a message. So for a message, a report tells the peer which messages
// wait.
void Sender::ask_gated(Instant now, Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (flow.end_at == Instant::infinite_future()) return;
  if (now < flow.end_at) return state_.timers.arm_link(peer, flow.end_at);
  flow.end_at = Instant::infinite_future();
  if (state_.gate_open(round, peer)) return;
  state_.queue_probe(peer);
  if (kind == FlowKind::point) state_.queue_report(peer);
  flow.end_at = now + state_.links[peer].rtt().timeout(flow.end_tries++);
  state_.timers.arm_link(peer, flow.end_at);
}

double Sender::ready_share() const {
  for (const Round* round : state_.rounds.collectives()) {
    const auto sends = [](const PhaseState& phase) { return phase.passes_open > 0; };
    if (round->ended || std::none_of(round->phases.begin(), round->phases.end(), sends)) continue;
    const auto peers = static_cast<std::uint32_t>(state_.config.size - 1);
    const std::uint32_t closed = std::min(round->gates_closed, peers - 1);
    return static_cast<double>(peers - closed) / peers;
  }
  return 1;
}

Sender::Hold Sender::hold(Rank peer) const {
  Hold found = Hold::nothing;
  for (const Round* round : state_.rounds.with(peer)) {
    if (round->ended) continue;
    for (const FlowKind kind : round->plan->active_kinds()) {
      const SendFlow& send = round->send(kind, peer);
      const bool before = kind == FlowKind::spread && round->plan->phase(FlowKind::reduce).active &&
                          !round->phase(FlowKind::reduce).settled;
      if (send.open() && !send.pass_over && !before) {
        if (!state_.gate_open(*round, peer)) return Hold::gate;
        if (state_.links[peer].path().held()) return Hold::relay;
        return state_.links[peer].path().credit() == 0 ? Hold::credit : Hold::turn;
      }
      if (send.open() || round->receive(kind, peer).open()) found = Hold::answer;
    }
  }
  return found;
}

}  // namespace leeway::protocol
