// Everything that is sent: control datagrams first, then data. Each train (GSO batch) has one
// destination, and destinations are served in rotation.
#include <algorithm>
#include <utility>

#include "base/contracts.h"
#include "protocol/coding.h"
#include "protocol/endpoint.h"
#include "protocol/report_contents.h"

namespace leeway::protocol {

bool Endpoint::poll_train(Instant now, TrainBuffer& out, Poll what) {
  return poll_control(now, out) || (what == Poll::all && poll_data(now, out));
}

bool Endpoint::poll_control(Instant now, TrainBuffer& out) {
  if (state_.group.probe_due()) {
    state_.group.on_probed();
    ++state_.counters.probes_sent;
    out.start(kEveryRank);
    write_bare(now, wire::PacketType::probe, kEveryRank, out);
    return true;
  }
  while (const auto peer = state_.outbox.next_control()) {
    state_.start_train(*peer, out);
    if (write_control(now, *peer, out)) return true;
  }
  return false;
}

// Writes one kind of the link's pending control datagrams. Queues the link again if more are left.
bool Endpoint::write_control(Instant now, Rank peer, TrainBuffer& out) {
  Link& link = state_.links[peer];
  if (link.dead) {
    if (!std::exchange(link.given_up_due, false)) return false;
    write_bare(now, wire::PacketType::given_up, peer, out);
    return true;
  }
  for (Round* at : state_.rounds.with(peer)) {
    Round& round = *at;
    for (int k = 0; k < wire::kFlowKinds; ++k) {
      const auto kind = static_cast<FlowKind>(k);
      if (round.phases[k].receives_open > 0 && round.receive(kind, peer).request_due &&
          write_repair_request(now, peer, round, kind, out)) {
        state_.outbox.queue_control(peer);
        return true;
      }
      if (round.phases[k].sends_open > 0 && round.send(kind, peer).end_due) {
        write_end(now, peer, round, kind, out);
        state_.outbox.queue_control(peer);
        return true;
      }
    }
  }
  if (state_.departure.parting() && !link.gone) return write_farewell(now, peer, out);
  if (link.report_due) {
    // Reports replace each other, so copies are worth it only for a report that a peer may be
    // waiting for.
    const int usual = link.unreported_settles > 0 || link.gone ? link.copies() : 1;
    const int wanted = std::exchange(link.report_copies, 0);
    const int more = state_.outbox.data_empty() ? std::min(wanted, Path::kCopiesMax) : 1;
    const int times = std::max(usual, more);
    write_report(now, peer, out);
    for (int copy = 1; copy < times && out.fits(out.segment_bytes()); ++copy)
      write_report(now, peer, out);
    if (PeerMessages* const messages = state_.rounds.messages(peer)) messages->rotate();
    if (link.probe_due) state_.outbox.queue_control(peer);
    return true;
  }
  if (!link.probe_due) return false;
  link.probe_due = false;
  ++state_.counters.probes_sent;
  for (int copy = 0; copy < link.copies(); ++copy)
    write_bare(now, wire::PacketType::probe, peer, out);
  return true;
}

void Endpoint::write_bare(Instant now, wire::PacketType type, Rank to, TrainBuffer& out) {
  out.append(wire::encode_bare(state_.prefix(type, to, now), out.scratch(wire::kPrefixBytes)), {});
}

void Endpoint::write_report(Instant now, Rank peer, TrainBuffer& out) {
  Link& link = state_.links[peer];
  const wire::Report report = report_contents(now, peer, link, state_.rounds, settling_.failures(),
                                              state_.config.datagram_bytes);
  if (PeerMessages* const messages = state_.rounds.messages(peer)) messages->reported_at = now;
  link.report_due = false;
  link.report_at = Instant::infinite_future();
  link.answer_at = Instant::infinite_future();
  link.unreported_settles = 0;
  link.point_unreported = false;
  link.on_reported();
  ++state_.counters.reports_sent;
  const auto scratch = out.scratch(wire::report_bytes(report));
  out.append(
      wire::encode_report(state_.prefix(wire::PacketType::report, peer, now), report, scratch), {});
}

// Number of copies for a datagram that had this many tries without an answer. Copies pass data that
// wait for the pace. On a slow link they alone would exceed it, and the data would never leave. So
// tries count only while no data is queued.
int Endpoint::copies(Rank peer, std::uint32_t tries) const {
  return state_.links[peer].copies(state_.outbox.data_empty() ? tries : 0);
}

// Writes a request for missing packets: as many words of the bitmap as one datagram holds. Returns
// false if no packet is wanted any more.
bool Endpoint::write_repair_request(Instant now, Rank peer, Round& round, FlowKind kind,
                                    TrainBuffer& out) {
  constexpr std::size_t kWordsMax = 512;
  std::array<std::uint64_t, kWordsMax> words;
  const std::size_t room =
      (state_.config.datagram_bytes - wire::kRepairFixedBytes) / sizeof(std::uint64_t);
  wire::Repair repair{.round = round.number, .kind = kind, .message_tag = round.plan->message_tag};
  ReceiveFlow& flow = round.receive(kind, peer);
  const PhasePlan& plan = round.plan->phase(kind);
  const bool all = !plan.gives_up() || (plan.fetch_empty && flow.first_pass_lost());
  const bool answered = flow.ended_pass >= flow.awaited_pass();
  const std::size_t count =
      flow.next_request(all, std::span(words).first(std::min(kWordsMax, room)), repair);
  if (count == 0) return false;
  const std::size_t bytes = wire::kRepairFixedBytes + count * sizeof(std::uint64_t);
  const std::uint32_t unanswered = answered || flow.tries == 0 ? 0 : flow.tries - 1;
  for (int copy = copies(peer, unanswered); copy > 0 && out.fits(bytes); --copy) {
    ++state_.counters.requests_sent;
    out.append(wire::encode_repair(state_.prefix(wire::PacketType::repair, peer, now), repair,
                                   std::span(words).first(count), out.scratch(bytes)),
               {});
  }
  return true;
}

// Sends good-bye in place of any other control datagram (WIRE 6.4). It settles all that the peer
// may wait for.
bool Endpoint::write_farewell(Instant now, Rank peer, TrainBuffer& out) {
  Link& link = state_.links[peer];
  const int copies = state_.departure.take_copies(peer, link.report_due, link.copies());
  link.report_due = link.probe_due = false;
  link.on_reported();
  for (int copy = 0; copy < copies; ++copy) write_bare(now, wire::PacketType::goodbye, peer, out);
  return copies > 0;
}

void Endpoint::write_end(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  flow.end_due = false;
  // A peer that has not opened the operation is late. Its silence does not mean that ENDs are lost.
  const int times = copies(peer, state_.gate_open(round, peer) ? flow.end_tries : 0);
  flow.end_at = now + state_.links[peer].rtt().timeout(flow.end_tries++);  // its copies are one try
  state_.timers.arm_link(peer, flow.end_at);
  const wire::End end{.round = round.number,
                      .kind = kind,
                      .attempt = flow.pass,
                      .flow_packets = flow.packets,
                      .weight = flow.weight,
                      .tail = flow.grid.tail(),
                      .message_tag = round.plan->message_tag,
                      .tag_digest = round.tag_digest};
  for (int copy = 0; copy < times && out.fits(wire::kEndBytes); ++copy) {
    ++state_.counters.ends_sent;
    out.append(wire::encode_end(state_.prefix(wire::PacketType::end, peer, now), end,
                                out.scratch(wire::kEndBytes)),
               {});
  }
}

double Endpoint::ready_share() const {
  for (const Round* round : state_.rounds.collectives()) {
    const auto sends = [](const PhaseState& phase) { return phase.passes_open > 0; };
    if (round->ended || std::none_of(round->phases.begin(), round->phases.end(), sends)) continue;
    const auto peers = static_cast<std::uint32_t>(state_.config.size - 1);
    const std::uint32_t closed = std::min(round->gates_closed, peers - 1);
    return static_cast<double>(peers - closed) / peers;
  }
  return 1;
}

bool Endpoint::poll_data(Instant now, TrainBuffer& out) {
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

// Without pacing, spread goes before reduce: its packets were just summed and are in the cache. On
// a slow uplink reduce goes first, because every rank waits for the rank whose contributions come
// last (docs/measurements/protocol.md).
bool Endpoint::fill_from_link(Instant now, Rank peer, TrainBuffer& out) {
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

bool Endpoint::fill_from_flow(Instant now, Rank peer, Round& round, FlowKind kind,
                              TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  if (flow.pass_over || flow.grouped) return false;
  Link& link = state_.links[peer];
  std::uint32_t credit = link.path().credit();
  if (flow.first_pass() && !state_.gate_open(round, peer)) {  // WIRE 2.4: eager packets only
    credit = std::min(credit, eager_credit(flow, peer));
    if (credit == 0 && state_.group.may_have_heard(round.plan->phase(kind)) &&
        flow.end_at == Instant::infinite_future()) {
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
  // One copy at a time: the others leave behind the datagrams of other destinations (WIRE 2.12).
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

// Number of further packets that may go to a peer before it has opened their operation. It keeps
// limits::kEagerPackets of one flow, and limits::kEarlySlotsPerPeer of all operations together.
std::uint32_t Endpoint::eager_credit(const SendFlow& flow, Rank peer) const {
  std::uint32_t kept = 0;
  for (const Round* round : state_.rounds.with(peer)) {
    if (round->ended || state_.gate_open(*round, peer)) continue;
    for (int k = 0; k < wire::kFlowKinds; ++k) {
      if (!round->plan->phases[k].active) continue;
      kept += round->send(static_cast<FlowKind>(k), peer).begun();
    }
  }
  const auto left = [](std::uint32_t limit, std::uint32_t used) {
    return limit - std::min(limit, used);
  };
  // Further copies take no slot there (WIRE 2.4).
  if (flow.copies > 1 && flow.begun() == flow.packets) return limits::kEagerPackets;
  return std::min(left(limits::kEagerPackets, flow.begun()),
                  left(limits::kEarlySlotsPerPeer, kept));
}

// Appends one packet of the flow to `receiver`, addressed to it or to every rank.
void Endpoint::append_data(Instant now, Rank to, Round& round, FlowKind kind, Rank receiver,
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

// Header without the packet's place.
wire::DataHeader Endpoint::header_in(const Round& round, FlowKind kind,
                                     const SendFlow& flow) const {
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

// Writes the header to the front of `scratch`. The payload may be the rest of it.
void Endpoint::write_data(Instant now, Rank to, Round& round, const wire::DataHeader& header,
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

void Endpoint::note_sent(Round& round, FlowKind kind, Rank peer, std::uint32_t packets) {
  round.send(kind, peer).sent += packets;
  // The header told the peer what a delayed report would tell, unless a receive of a message waits
  // to be reported.
  Link& link = state_.links[peer];
  if (packets == 0 || link.point_unreported) return;
  link.report_at = Instant::infinite_future();
  link.unreported_settles = 0;
}

// Ends the pass with an END behind its last packet, in the same train if it fits. A receiver that
// got the packet with the last position knows already. Flows of up to limits::kEagerPackets packets
// leave the END to the timer.
void Endpoint::end_pass(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  round.phase(kind).set_pass_over(flow, true);
  const bool leave_to_timer = flow.packets <= limits::kEagerPackets && flow.first_pass() &&
                              state_.links[peer].copies() == 1;
  if (leave_to_timer) {
    flow.end_at = now + state_.links[peer].rtt().timeout(flow.end_tries++);
    state_.timers.arm_link(peer, flow.end_at);
  } else if (!out.empty() && out.fits(wire::kEndBytes) && state_.links[peer].copies() == 1) {
    write_end(now, peer, round, kind, out);
  } else {
    flow.end_due = true;
    state_.outbox.queue_control(peer);
  }
  // The caller may be free to go. on_wake() lets it, outside of sending.
  if (!round.done && round.caller_may_go()) state_.timers.arm_round(round, now);
}

}  // namespace leeway::protocol
