// What is sent: control first, then data, one destination a train, destinations in turn. After
// src/protocol/endpoint_send.cc.
#include <algorithm>
#include <bit>

#include "base/contracts.h"
#include "endpoint/abstract_endpoints.h"
#include "protocol/train_buffer.h"
#include "wire/packet.h"

namespace leeway::sim {
namespace {

constexpr std::uint32_t kRepairWordsMax = 512;

}  // namespace

void AbstractEndpoints::queue_control(std::uint32_t rank, std::uint32_t peer) {
  AbstractLink& to = link(rank, peer);
  if (to.control_queued) return;
  to.control_queued = true;
  ranks_[rank].control.push(peer);
}

void AbstractEndpoints::queue_data(std::uint32_t rank, std::uint32_t peer) {
  AbstractLink& to = link(rank, peer);
  if (to.data_queued) return;
  to.data_queued = true;
  ranks_[rank].data.push(peer);
}

void AbstractEndpoints::queue_report(std::uint32_t rank, std::uint32_t peer) {
  link(rank, peer).report_due = true;
  queue_control(rank, peer);
}

void AbstractEndpoints::pump(Instant now, std::uint32_t rank) {
  AbstractRank& node = ranks_[rank];
  if (node.paused || node.dead) return;
  while (node.control.count + node.data.count > 0 && uplink_has_room(now, rank)) {
    if (!poll_control(now, rank) && !poll_data(now, rank)) return;
  }
}

// If it has none, the rank is woken when it has.
bool AbstractEndpoints::uplink_has_room(Instant now, std::uint32_t rank) {
  Uplink& uplink = ranks_[rank].uplink;
  if (now < uplink.writable_at()) return false;  // woken then already
  if (uplink.has_room(now, network_)) return true;
  queue_.push(uplink.writable_at(), rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::writable));
  return false;
}

bool AbstractEndpoints::poll_control(Instant now, std::uint32_t rank) {
  AbstractRank& node = ranks_[rank];
  while (node.control.count > 0) {
    const std::uint32_t peer = node.control.pop();
    if (node.control.count > 0) prefetch(rank, node.control.first());
    link(rank, peer).control_queued = false;
    if (write_control(now, rank, peer)) return true;
  }
  return false;
}

// One kind of the link's pending control work; queues the link again when more is left.
bool AbstractEndpoints::write_control(Instant now, std::uint32_t rank, std::uint32_t peer) {
  AbstractRank& node = ranks_[rank];
  AbstractLink& to = link(rank, peer);
  if (to.lingering > 0) {
    for (AbstractLingering& entry : lingering_to(rank, peer)) {
      if (!entry.flow.end_due || entry.flow.settled) continue;
      write_end(now, rank, peer, {entry.flow, *entry.plan, entry.half, entry.opened});
      queue_control(rank, peer);
      return true;
    }
  }
  for (const int half : {kReduceHalf, kSpreadHalf}) {
    if (to.receive[half].request_due) {
      write_repair_request(now, rank, peer, half);
      queue_control(rank, peer);
      return true;
    }
    if (to.send[half].end_due) {
      write_end(now, rank, peer, {to.send[half], *node.plan, half, node.opened});
      queue_control(rank, peer);
      return true;
    }
  }
  if (to.report_due) {
    // Reports replace each other: copies are worth it only for what a peer may be waiting for.
    const int copies = to.unreported_settles > 0 ? copies_to(to) : 1;
    for (int copy = 0; copy < copies; ++copy) write_report(now, rank, peer);
    if (to.probe_due) queue_control(rank, peer);
    return true;
  }
  if (!to.probe_due) return false;
  to.probe_due = false;
  for (int copy = 0; copy < copies_to(to); ++copy)
    send_control(now, rank, peer,
                 AbstractWord(AbstractType::probe, node.opened, next_sequence(now, to)),
                 wire::kPrefixBytes);
  return true;
}

int AbstractEndpoints::copies_to(const AbstractLink& to) {
  return to.lossy() ? 3 : 1;
}

std::uint32_t AbstractEndpoints::next_sequence(Instant now, AbstractLink& to) const {
  return to.take_sequence(now, report_every_);
}

void AbstractEndpoints::write_report(Instant now, std::uint32_t rank, std::uint32_t peer) {
  AbstractRank& node = ranks_[rank];
  AbstractLink& to = link(rank, peer);
  AbstractWord::Report report;
  report.largest_sequence = to.largest_seen;
  report.received = to.received;
  for (const int half : {kReduceHalf, kSpreadHalf})
    report.half_settled[half] = to.receive[half].finished;
  report.closed = node.closed;
  report.lingers = to.lingering > 0;
  report.prompt = to.last_arrival_ns == now.ns;
  to.report_due = false;
  to.report_at.clear();
  to.unreported_settles = 0;
  to.unreported = 0;
  const std::size_t listed = (node.closed ? 0 : 1) + (report.lingers ? 1 : 0);
  AbstractWord word(AbstractType::report, node.opened, next_sequence(now, to));
  send_control(now, rank, peer, word.report(report),
               wire::kReportFixedBytes + listed * wire::kOpenRoundBytes);
}

// All datagrams of a request say the same, so that any of them is enough.
void AbstractEndpoints::write_repair_request(Instant now, std::uint32_t rank, std::uint32_t peer,
                                             int half) {
  AbstractRank& node = ranks_[rank];
  AbstractLink& to = link(rank, peer);
  AbstractReceiveFlow& flow = to.receive[half];
  flow.request_due = false;
  const std::uint32_t room = (operation_.datagram_bytes - wire::kRepairFixedBytes) / 8;
  std::uint32_t words = (node.plan->flow_packets(half, peer, rank) + 63) / 64;
  while (words > 0) {
    const std::uint32_t count = std::min({kRepairWordsMax, room, words});
    words -= count;
    for (int copy = 0; copy < copies_to(to); ++copy) {
      AbstractWord word(AbstractType::repair, node.opened, next_sequence(now, to));
      send_control(now, rank, peer, word.flow(half, flow.requested_pass),
                   wire::kRepairFixedBytes + std::size_t{count} * 8);
    }
  }
}

void AbstractEndpoints::write_end(Instant now, std::uint32_t rank, std::uint32_t peer,
                                  Outgoing out) {
  AbstractLink& to = link(rank, peer);
  out.flow.end_due = false;
  repeat_end(now, rank, peer, out.flow);  // its copies are one try
  for (int copy = 0; copy < copies_to(to); ++copy) {
    AbstractWord word(AbstractType::end, out.opened, next_sequence(now, to));
    send_control(now, rank, peer, word.flow(out.half, out.flow.pass), wire::kEndBytes);
  }
}

void AbstractEndpoints::repeat_end(Instant now, std::uint32_t rank, std::uint32_t peer,
                                   AbstractSendFlow& flow) {
  const Instant at = now + Duration(link(rank, peer).timeout_ns(flow.end_tries));
  if (flow.end_tries < UINT8_MAX) ++flow.end_tries;
  flow.end_at = AbstractTick::at(at);
  arm(now, rank, peer, at);
}

void AbstractEndpoints::send_control(Instant now, std::uint32_t rank, std::uint32_t peer,
                                     AbstractWord word, std::size_t bytes) {
  ++counters_.control_sent;
  network_.send(now, {.from = rank,
                      .to = peer,
                      .bytes = static_cast<std::uint32_t>(bytes) + kHeaderBytes,
                      .word = word.bits(),
                      .traffic = Traffic::control});
}

bool AbstractEndpoints::poll_data(Instant now, std::uint32_t rank) {
  AbstractRank& node = ranks_[rank];
  while (node.data.count > 0) {
    const std::uint32_t peer = node.data.pop();
    if (node.data.count > 0) prefetch(rank, node.data.first());
    link(rank, peer).data_queued = false;
    if (!fill_from_link(now, rank, peer)) continue;
    queue_data(rank, peer);  // perhaps there is more; if not, the next visit finds out
    return true;
  }
  return false;
}

// Oldest call first, and within it what was reduced before what is still to be.
bool AbstractEndpoints::fill_from_link(Instant now, std::uint32_t rank, std::uint32_t peer) {
  AbstractRank& node = ranks_[rank];
  AbstractLink& to = link(rank, peer);
  if (to.lingering > 0) {
    for (AbstractLingering& entry : lingering_to(rank, peer)) {
      if (entry.flow.settled) continue;
      if (fill_from_flow(now, rank, peer, {entry.flow, *entry.plan, entry.half, entry.opened}))
        return true;
    }
  }
  for (const int half : {kSpreadHalf, kReduceHalf}) {
    if (to.send[half].settled) continue;
    if (fill_from_flow(now, rank, peer, {to.send[half], *node.plan, half, node.opened}))
      return true;
  }
  return false;
}

bool AbstractEndpoints::fill_from_flow(Instant now, std::uint32_t rank, std::uint32_t peer,
                                       Outgoing out) {
  AbstractSendFlow& flow = out.flow;
  if (flow.pass_over) return false;
  AbstractLink& to = link(rank, peer);
  const std::uint32_t flying = to.in_flight();
  std::uint32_t credit = flying >= window_ ? 0 : window_ - flying;
  if (flow.first_pass() && later(out.opened, to.peer_opened)) {  // eager packets only
    credit =
        std::min(credit, limits::kEagerPackets - std::min(flow.position, limits::kEagerPackets));
  } else if (credit == 0 && !to.probe_at.set()) {
    const Instant at = now + Duration(to.timeout_ns(to.probe_tries));
    to.probe_at = AbstractTick::at(at);
    arm(now, rank, peer, at);
  }
  const std::uint32_t train = out.plan.halves[out.half].train_packets;
  const std::uint32_t most = std::min(credit, train);
  const std::uint32_t packets = out.plan.flow_packets(out.half, rank, peer);
  TrainSent sent;
  bool handed_out = false;
  if (flow.first_pass()) {
    sent = send_first_pass(now, rank, peer, out, most);
    handed_out = flow.position == packets;
  } else {
    sent = send_repairs(now, rank, peer, out, most);
    handed_out = next_missing(rank, peer, out) == packets;
  }
  const bool room = sent.packets > 0 && sent.packets < train && !sent.closed;
  if (handed_out) end_pass(now, rank, peer, out, room);
  return sent.packets > 0;
}

AbstractEndpoints::TrainSent AbstractEndpoints::send_first_pass(Instant now, std::uint32_t rank,
                                                                std::uint32_t peer, Outgoing out,
                                                                std::uint32_t packets_max) {
  AbstractSendFlow& flow = out.flow;
  const AbstractShard& shard = ranks_[rank].shard;
  const std::uint32_t packets = out.plan.flow_packets(out.half, rank, peer);
  const std::uint32_t available = out.half == kSpreadHalf && out.plan.halves[kSpreadHalf].streaming
                                      ? shard.released()
                                      : packets;
  const std::uint32_t count = std::min(packets_max, available - flow.position);
  const std::uint32_t start =
      out.half == kReduceHalf ? starts_[out.opened % starts_.size()].by_owner[peer] : 0;
  for (std::uint32_t i = 0; i < count; ++i, ++flow.position) {
    std::uint32_t index = flow.position;
    if (out.half == kReduceHalf) {
      index += start;
      if (index >= packets) index -= packets;
    } else if (out.plan.halves[kSpreadHalf].streaming) {
      index = shard.spread_index(flow.position);
    }
    send_data(now, rank, peer, out, index, flow.position + 1 == packets);
    if (is_short(out, rank, peer, index)) {
      ++flow.position;
      return {i + 1, true};
    }
  }
  return {count, false};
}

AbstractEndpoints::TrainSent AbstractEndpoints::send_repairs(Instant now, std::uint32_t rank,
                                                             std::uint32_t peer, Outgoing out,
                                                             std::uint32_t packets_max) {
  const std::uint32_t packets = out.plan.flow_packets(out.half, rank, peer);
  for (std::uint32_t sent = 0; sent < packets_max; ++sent) {
    const std::uint32_t index = next_missing(rank, peer, out);
    if (index == packets) return {sent, false};
    out.flow.position = index + 1;
    send_data(now, rank, peer, out, index, false);
    ++counters_.repairs_sent;
    if (is_short(out, rank, peer, index)) return {sent + 1, true};
  }
  return {packets_max, false};
}

// All datagrams of a train have one length, but for the last.
bool AbstractEndpoints::is_short(Outgoing out, std::uint32_t rank, std::uint32_t peer,
                                 std::uint32_t index) {
  const AbstractHalf& half = out.plan.halves[out.half];
  return half.bytes_of(AbstractPlan::owner(out.half, rank, peer), index) < half.full_bytes;
}

// The first packet from the scan's position on that the receiver lacks; the flow's end if none, or
// if the receiver has left the call.
std::uint32_t AbstractEndpoints::next_missing(std::uint32_t rank, std::uint32_t peer,
                                              Outgoing out) const {
  const AbstractRank& receiver = ranks_[peer];
  const std::uint32_t packets = out.plan.flow_packets(out.half, rank, peer);
  if (receiver.opened != out.opened) return packets;
  const std::uint64_t* ledger = receiver.ledger.data() + out.plan.ledger_at(out.half, rank, peer);
  for (std::uint32_t at = out.flow.position; at < packets; at = (at / 64 + 1) * 64) {
    const std::uint64_t missing = ~ledger[at / 64] >> at % 64;
    if (missing == 0) continue;
    return std::min(packets, at + static_cast<std::uint32_t>(std::countr_zero(missing)));
  }
  return packets;
}

void AbstractEndpoints::send_data(Instant now, std::uint32_t rank, std::uint32_t peer, Outgoing out,
                                  std::uint32_t index, bool last) {
  AbstractRank& node = ranks_[rank];
  AbstractLink& to = link(rank, peer);
  const std::uint32_t bytes =
      out.plan.halves[out.half].bytes_of(AbstractPlan::owner(out.half, rank, peer), index);
  const bool current = out.opened == node.opened;
  const bool settled =
      !current || (node.phases[kReduceHalf].settled && node.phases[kSpreadHalf].settled);
  AbstractWord word(AbstractType::data, out.opened, next_sequence(now, to));
  word.flow(out.half, out.flow.pass).packet(index, last, settled);
  if (current) node.bytes_sent += bytes;
  ++counters_.data_sent;
  // The header told the peer what a delayed report would.
  to.report_at.clear();
  to.unreported_settles = 0;
  network_.send(now, {.from = rank,
                      .to = peer,
                      .bytes = bytes + kHeaderBytes,
                      .word = word.bits(),
                      .traffic = Traffic::data});
}

// The pass is over: say so behind its last packet. A receiver that got the packet with the last
// position knows already; flows of a few packets leave the END to the timer.
void AbstractEndpoints::end_pass(Instant now, std::uint32_t rank, std::uint32_t peer, Outgoing out,
                                 bool room) {
  AbstractRank& node = ranks_[rank];
  AbstractSendFlow& flow = out.flow;
  flow.pass_over = true;
  if (out.opened == node.opened) --node.phases[out.half].passes_open;
  const bool one_copy = copies_to(link(rank, peer)) == 1;
  const std::uint32_t packets = out.plan.flow_packets(out.half, rank, peer);
  if (packets <= limits::kEagerPackets && flow.first_pass() && one_copy) {
    repeat_end(now, rank, peer, flow);
  } else if (room && one_copy) {
    write_end(now, rank, peer, out);
  } else {
    flow.end_due = true;
    queue_control(rank, peer);
  }
}

}  // namespace leeway::sim
