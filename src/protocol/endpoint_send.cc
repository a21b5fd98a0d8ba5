// Everything that is sent: control datagrams first, then data, one destination a train,
// destinations in turn.
#include <algorithm>
#include <bit>

#include "base/contracts.h"
#include "protocol/endpoint.h"

namespace leeway::protocol {

wire::Prefix Endpoint::prefix(wire::PacketType type, Rank to, Instant now) {
  const std::uint32_t sequence = to == kEveryRank ? ++group_sent_ : links_[to].take_sequence(now);
  return {type, config_.epoch, config_.self, to, sequence};
}

void Endpoint::queue_control(Rank peer) {
  if (links_[peer].control_queued) return;
  links_[peer].control_queued = true;
  control_links_.push(peer);
}

void Endpoint::queue_data(Rank peer) {
  if (links_[peer].data_queued) return;
  links_[peer].data_queued = true;
  data_links_.push(peer);
}

void Endpoint::queue_report(Rank peer) {
  links_[peer].report_due = true;
  queue_control(peer);
}

bool Endpoint::poll_train(Instant now, TrainBuffer& out) {
  return poll_control(now, out) || poll_data(now, out);
}

bool Endpoint::poll_control(Instant now, TrainBuffer& out) {
  if (group_probe_due_) {
    write_group_probe(now, out);
    return true;
  }
  while (!control_links_.empty()) {
    const Rank peer = control_links_.pop();
    links_[peer].control_queued = false;
    out.start(peer);
    if (!write_control(now, peer, out)) continue;
    return true;
  }
  return false;
}

// How often a control datagram is sent at once. A lost one costs a time-out, a copy 36 bytes: where
// one datagram in a hundred is lost, three copies leave one in a million such waits.
int Endpoint::copies_to(Rank peer) const {
  constexpr double kLossy = 0.01;
  return links_[peer].delivered_fraction() < 1.0 - kLossy ? 3 : 1;
}

// One kind of the link's pending control work; queues the link again when more is left.
bool Endpoint::write_control(Instant now, Rank peer, TrainBuffer& out) {
  Link& link = links_[peer];
  for (Round* at : rounds_.with(peer)) {
    Round& round = *at;
    for (int k = 0; k < wire::kFlowKinds; ++k) {
      const auto kind = static_cast<FlowKind>(k);
      if (!round.plan.phases[k].active) continue;
      if (round.receive(kind, peer).request_due &&
          write_repair_request(now, peer, round, kind, out)) {
        queue_control(peer);
        return true;
      }
      if (round.send(kind, peer).end_due) {
        write_end(now, peer, round, kind, out);
        queue_control(peer);
        return true;
      }
    }
  }
  if (presence_ == Presence::parting && !link.gone) return write_farewell(now, peer, out);
  if (link.report_due) {
    // Reports replace each other: copies are worth it only for what a peer may be waiting for.
    const int copies = link.unreported_settles > 0 || link.gone ? copies_to(peer) : 1;
    for (int copy = 0; copy < copies; ++copy) write_report(now, peer, out);
    if (link.probe_due) queue_control(peer);
    return true;
  }
  if (!link.probe_due) return false;
  link.probe_due = false;
  ++counters_.probes_sent;
  for (int copy = 0; copy < copies_to(peer); ++copy) {
    out.append(wire::encode_bare(prefix(wire::PacketType::probe, peer, now),
                                 out.scratch(wire::kPrefixBytes)),
               {});
  }
  return true;
}

void Endpoint::write_report(Instant now, Rank peer, TrainBuffer& out) {
  Link& link = links_[peer];
  wire::Report report;
  report.largest_sequence = link.largest_seen();
  report.received = link.received();
  report.delay_us = static_cast<std::uint32_t>(link.since_largest(now).count() / 1000);
  report.opened_below = rounds_.opened_below();
  report.point_opened_below = rounds_.receives_opened(peer);
  report.group_largest = link.group.largest_seen();
  report.missed = link.missed.bits(rounds_.opened_below());
  for (const Round* round : rounds_.collectives()) list_round(*round, peer, report);
  list_messages(now, peer, report);
  link.report_due = false;
  link.report_at = Instant::infinite_future();
  link.unreported_settles = 0;
  link.point_unreported = false;
  link.on_reported();
  ++counters_.reports_sent;
  const auto scratch =
      out.scratch(wire::kReportFixedBytes + wire::kOpenRoundBytes * report.open.size());
  out.append(wire::encode_report(prefix(wire::PacketType::report, peer, now), report, scratch), {});
}

void Endpoint::list_round(const Round& round, Rank peer, wire::Report& report) {
  const bool point = round.plan.point_to_point();
  wire::OpenRound& entry = report.open[report.open_count++];
  entry = {.round = round.number,
           .point_to_point = point,
           .sending = round.plan.point_send,
           .tag = round.plan.tag};
  const auto settled = [&](FlowKind kind) {
    if (!round.plan.phase(kind).active) return true;
    const ReceiveFlow& flow = round.receive(kind, peer);
    return !flow.open() || flow.abandoned;  // WIRE 3.4: who has left is not asked to say so again
  };
  entry.reduce_settled = settled(FlowKind::reduce);
  entry.spread_settled = settled(point ? FlowKind::point : FlowKind::spread);
}

// A report has room for kOpenRoundsMax entries. First come messages that are about to fail, which
// both sides must learn (WIRE 3.5); then posted receives, for one of which there is always room; in
// the end our own messages, which the peer need not know. To the peer, a receive that finds no room
// has not been posted yet (WIRE 3.4).
void Endpoint::list_messages(Instant now, Rank peer, wire::Report& report) {
  PeerMessages* const messages = rounds_.messages(peer);
  if (messages == nullptr) return list_disputed(report);
  messages->reported_at = now;
  const auto list = [&](const Round& message) {
    if (report.open_count == report.open.size()) return false;
    list_round(message, peer, report);
    return true;
  };
  const MessageList& sends = messages->sends;
  const MessageList& receives = messages->receives;
  for (const MessageList* either : {&sends, &receives}) {
    for (std::size_t i = 0; i < either->talking(); ++i) {
      if (!(*either)[i].failure.ok()) list((*either)[i]);
    }
  }
  std::size_t listed = 0;
  while (listed < receives.talking() &&
         (!receives[listed].failure.ok() || list(receives[listed]))) {
    ++listed;
  }
  if (listed < receives.size()) report.point_opened_below = receives[listed].number;
  list_disputed(report);
  for (std::size_t i = 0; i < sends.talking(); ++i) {
    if (sends[i].failure.ok()) list(sends[i]);
  }
}

// WIRE 3.5: who opens one only now must hear of the disagreement too, and not that everybody has
// left.
void Endpoint::list_disputed(wire::Report& report) const {
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(disputes_, disputed_.size()); ++i) {
    const wire::OpenRound& entry = disputed_[i];
    const auto listed = std::span(report.open).first(report.open_count);
    const bool open_still =
        std::any_of(listed.begin(), listed.end(), [&](const wire::OpenRound& other) {
          return !other.point_to_point && other.round == entry.round;
        });
    const bool recent =
        rounds_.opened_below() - entry.round <= std::uint32_t{limits::kOpenRoundsMax};
    if (!open_still && recent && report.open_count < report.open.size())
      report.open[report.open_count++] = entry;
  }
}

// Asks for missing packets, as many words of the bitmap as one datagram holds. False: nothing is
// wanted any more.
bool Endpoint::write_repair_request(Instant now, Rank peer, Round& round, FlowKind kind,
                                    TrainBuffer& out) {
  ReceiveFlow& flow = round.receive(kind, peer);
  const PhasePlan& plan = round.plan.phase(kind);
  const bool all =
      plan.delivery != Delivery::Kind::best_effort || (plan.fetch_empty && flow.first_pass_lost());
  constexpr std::size_t kWordsMax = 512;
  std::array<std::uint64_t, kWordsMax> words;
  const std::size_t room =
      (config_.datagram_bytes - wire::kRepairFixedBytes) / sizeof(std::uint64_t);
  const std::size_t count = std::min({kWordsMax, room, flow.arrived.words() - flow.request_word});
  bool any = false;
  for (std::size_t w = 0; w < count; ++w) {
    const std::size_t at = flow.request_word + w;
    std::uint64_t missing = ~flow.arrived.word(at);
    if (!all) missing &= flow.required != nullptr ? flow.required->word(at) : 0;
    const std::size_t tail = flow.packets - at * 64;
    if (tail < 64) missing &= (std::uint64_t{1} << tail) - 1;
    words[w] = missing;
    any |= missing != 0;
  }
  wire::Repair repair{.round = round.number, .kind = kind, .attempt = flow.requested_pass};
  repair.base = flow.request_word * 64;
  flow.request_word += static_cast<std::uint32_t>(count);
  repair.last = flow.request_word == flow.arrived.words();
  flow.request_due = !repair.last;
  if (!any) return flow.request_due && write_repair_request(now, peer, round, kind, out);
  for (int copy = 0; copy < copies_to(peer); ++copy) {
    out.append(
        wire::encode_repair(prefix(wire::PacketType::repair, peer, now), repair,
                            std::span(words).first(count),
                            out.scratch(wire::kRepairFixedBytes + count * sizeof(std::uint64_t))),
        {});
  }
  return true;
}

void Endpoint::write_end(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  flow.end_due = false;
  flow.end_at = now + links_[peer].rtt.timeout(flow.end_tries++);  // its copies are one try
  arm_link(peer, flow.end_at);
  const wire::End end{round.number, kind, flow.pass, flow.packets, flow.weight};
  for (int copy = 0; copy < copies_to(peer); ++copy) {
    out.append(wire::encode_end(prefix(wire::PacketType::end, peer, now), end,
                                out.scratch(wire::kEndBytes)),
               {});
  }
}

bool Endpoint::poll_data(Instant now, TrainBuffer& out) {
  while (!data_links_.empty()) {
    const Rank peer = data_links_.pop();
    if (peer == kEveryRank) {
      group_queued_ = false;
      out.start(kEveryRank);
      if (!fill_from_groups(now, out)) continue;
      queue_group();
      return true;
    }
    links_[peer].data_queued = false;
    out.start(peer);
    if (!fill_from_link(now, peer, out)) continue;
    queue_data(peer);  // perhaps there is more; if not, the next visit finds out
    return true;
  }
  return false;
}

// Oldest operation first, and within it what was reduced before what is still to be: results leave
// while they are in the cache, and others wait for them.
bool Endpoint::fill_from_link(Instant now, Rank peer, TrainBuffer& out) {
  for (Round* round : rounds_.with(peer)) {
    for (int k = wire::kFlowKinds; k-- > 0;) {
      const auto kind = static_cast<FlowKind>(k);
      if (!round->plan.phases[k].active || !round->send(kind, peer).open()) continue;
      if (fill_from_flow(now, peer, *round, kind, out)) return true;
    }
  }
  return false;
}

bool Endpoint::fill_from_flow(Instant now, Rank peer, Round& round, FlowKind kind,
                              TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  if (flow.pass_over || flow.grouped) return false;
  Link& link = links_[peer];
  std::uint32_t credit = link.credit();
  if (flow.first_pass() && !gate_open(round, peer)) {  // WIRE 2.4: eager packets only
    credit = std::min(
        credit, limits::kEagerPackets - std::min(flow.cursor.position(), limits::kEagerPackets));
    if (credit == 0 && may_have_heard(round, kind) && flow.end_at == Instant::infinite_future()) {
      flow.end_at = now + link.rtt.timeout(flow.end_tries++);
      arm_link(peer, flow.end_at);
    }
  } else if (credit == 0 && link.probe_at == Instant::infinite_future()) {
    link.probe_at = now + link.rtt.timeout(link.probe_tries);
    arm_link(peer, link.probe_at);
  }
  while (credit > 0 && out.has_room()) {
    const std::uint32_t position =
        flow.first_pass() ? flow.cursor.position() : flow.repair_position;
    const auto index = flow.first_pass() ? flow.cursor.next() : next_repair(flow);
    if (!index) break;
    const std::uint32_t ahead = flow.first_pass() ? flow.cursor.peek().value_or(*index) : *index;
    append_data(now, peer, round, kind, peer, {*index, position, ahead}, out);
    note_sent(round, kind, peer, 1);
    --credit;
  }
  const bool handed_out = flow.first_pass() ? flow.cursor.exhausted() : flow.wanted_count == 0;
  if (handed_out) end_pass(now, peer, round, kind, out);
  return !out.empty();
}

std::optional<std::uint32_t> Endpoint::next_repair(SendFlow& flow) {
  if (flow.wanted_count == 0) return std::nullopt;
  while (flow.wanted.word(flow.wanted_from / 64) >> (flow.wanted_from % 64) == 0) {
    flow.wanted_from = (flow.wanted_from / 64 + 1) * 64;
  }
  flow.wanted_from += static_cast<std::uint32_t>(
      std::countr_zero(flow.wanted.word(flow.wanted_from / 64) >> (flow.wanted_from % 64)));
  flow.wanted.clear(flow.wanted_from);
  --flow.wanted_count;
  ++flow.repair_position;
  return flow.wanted_from;
}

// One packet of the flow to `receiver`, addressed to it, or to every rank.
void Endpoint::append_data(Instant now, Rank to, Round& round, FlowKind kind, Rank receiver,
                           const Place& place, TrainBuffer& out) {
  const SendFlow& flow = round.send(kind, receiver);
  const MutableByteSpan scratch = out.scratch(config_.datagram_bytes);
  const Payload payload = round.client->payload(kind, receiver, place.index, place.ahead,
                                                scratch.subspan(wire::kDataHeaderBytes));
  LEEWAY_ASSERT(wire::kDataHeaderBytes + payload.bytes.size() <= config_.datagram_bytes);
  wire::DataHeader header;
  header.round = round.number;
  header.kind = kind;
  header.codec = round.plan.phase(kind).codec;
  header.attempt = flow.pass;
  header.index = place.index;
  header.position = place.position;
  header.flow_packets = flow.packets;
  header.weight = flow.weight;
  header.opened_below = rounds_.opened_below();
  header.settled_below = rounds_.settled_below();
  header.tag_digest = round.tag_digest;
  wire::Prefix in_front = prefix(wire::PacketType::data, to, now);
  in_front.payload_summed = config_.sum_payloads;
  wire::encode_data(in_front, header, payload.crc, scratch);
  out.append(wire::kDataHeaderBytes, payload.bytes);
  if (flow.grid.packet_elements(place.index) < flow.grid.elements_per_packet()) out.close();
  round.bytes_sent += wire::kDataHeaderBytes + payload.bytes.size();
  ++counters_.data_sent;
  counters_.group_sent += to == kEveryRank;
  counters_.repairs_sent += flow.pass > 0;
}

void Endpoint::note_sent(Round& round, FlowKind kind, Rank peer, std::uint32_t packets) {
  round.send(kind, peer).sent += packets;
  // The header told the peer what a delayed report would, unless that is about a receive.
  Link& link = links_[peer];
  if (packets == 0 || link.point_unreported) return;
  link.report_at = Instant::infinite_future();
  link.unreported_settles = 0;
}

// The pass is over: say so behind its last packet, in the same train where it fits. A receiver that
// got the packet with the last position knows already; flows of a few packets leave the END to the
// timer.
void Endpoint::end_pass(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out) {
  SendFlow& flow = round.send(kind, peer);
  round.phase(kind).set_pass_over(flow, true);
  const bool leave_to_timer =
      flow.packets <= limits::kEagerPackets && flow.first_pass() && copies_to(peer) == 1;
  if (leave_to_timer) {
    flow.end_at = now + links_[peer].rtt.timeout(flow.end_tries++);
    arm_link(peer, flow.end_at);
  } else if (!out.empty() && out.fits(wire::kEndBytes) && copies_to(peer) == 1) {
    write_end(now, peer, round, kind, out);
  } else {
    flow.end_due = true;
    queue_control(peer);
  }
  // The caller may be free to go: on_wake() decides, outside of sending.
  if (!round.done) arm_round(round, now);
}

}  // namespace leeway::protocol
