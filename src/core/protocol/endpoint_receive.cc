// Everything that arrives. It is untrusted until checked against the plan. A datagram that does not
// fit is refused and counted.
#include <algorithm>
#include <cmath>

#include "base/contracts.h"
#include "protocol/endpoint.h"
#include "protocol/mismatch.h"

namespace leeway::protocol {
namespace {

template <typename T>
void prefetch(const T& object) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&object);
  for (std::size_t at = 0; at < sizeof(T); at += 64) __builtin_prefetch(begin + at, 1);
}

}  // namespace

void Endpoint::expect(Rank from) const {
  prefetch(state_.links[from]);
  for (const Round* round : state_.rounds.collectives()) {
    for (const PhaseState& phase : round->phases) {
      if (phase.settled && phase.sends_open == 0) continue;
      prefetch(phase.receive[from]);
      prefetch(phase.send[from]);
    }
  }
}

void Endpoint::on_datagram(Instant now, Rank from, ByteSpan datagram) {
  const wire::Expectation expect{state_.config.epoch, state_.config.self, state_.config.size};
  wire::Prefix prefix;
  wire::Refusal refusal = wire::decode_prefix(datagram, &expect, prefix);
  if (refusal == wire::Refusal::none && prefix.source != from) refusal = wire::Refusal::misrouted;
  if (refusal == wire::Refusal::none && wire::is_for_process(datagram))
    refusal = wire::Refusal::type;
  if (refusal != wire::Refusal::none) {
    ++state_.counters.refused[static_cast<int>(refusal)];
    return;
  }
  if (prefix.type == wire::PacketType::alive) {
    // WIRE 6.9: the rank has not spoken, only its process.
    state_.counters.refused_report += !state_.links[from].path().on_alive(now, prefix.sequence);
    return;
  }
  state_.links[from].path().on_life(now);
  state_.links[from].gap.pause_until(busy_since_);
  if (prefix.destination == kEveryRank) {
    state_.links[from].on_group_arrival(now, prefix.sequence);
  } else {
    state_.links[from].on_arrival(now, prefix.sequence, datagram.size());
  }
  state_.links[from].heard = true;
  if (state_.links[from].dead) return answer_dead(from, prefix.type);
  switch (prefix.type) {
    case wire::PacketType::data: {
      wire::DataHeader header;
      ByteSpan payload;
      refusal = wire::decode_data(datagram, header, payload);
      if (refusal == wire::Refusal::none) on_data(now, from, header, datagram);
      break;
    }
    case wire::PacketType::report: {
      wire::Report report;
      refusal = wire::decode_report(datagram, report);
      if (refusal == wire::Refusal::none) on_report(now, from, report);
      break;
    }
    case wire::PacketType::end: {
      wire::End end;
      refusal = wire::decode_end(datagram, end);
      if (refusal == wire::Refusal::none) on_end(now, from, end);
      break;
    }
    case wire::PacketType::repair: {
      wire::Repair repair;
      ByteSpan words;
      refusal = wire::decode_repair(datagram, repair, words);
      if (refusal == wire::Refusal::none) on_repair(now, from, repair, words);
      break;
    }
    case wire::PacketType::probe:
      on_probe(now, from);
      break;
    case wire::PacketType::goodbye:
      on_goodbye(now, from);
      break;
    case wire::PacketType::given_up:
      on_given_up(now, from);
      break;
    case wire::PacketType::alive:  // heard above
    case wire::PacketType::size:   // refused above
    case wire::PacketType::piece:
      break;
  }
  if (refusal != wire::Refusal::none) ++state_.counters.refused[static_cast<int>(refusal)];
  // WIRE 6.5: a peer that has left needs no credit. Where both have left, reports in three copies
  // would answer each other for ever.
  if (!state_.links[from].gone && (prefix.asks || state_.links[from].report_wanted()))
    state_.queue_report(from);
  reap(now);
}

// This takes no more parameters than registers hold. To fetch the two halves of a stack parameter
// at once, the processor waited until all earlier stores, the last packet, were in the cache. With
// the same change in UcxSender::send_one(), an all-reduce over shared memory takes 0.95 of the
// time.
void Endpoint::on_data(Instant now, Rank from, const wire::DataHeader& header, ByteSpan datagram) {
  ++state_.counters.data_received;
  Round* const round =
      state_.rounds.find(header.kind, header.round, header.message_tag, from, /*as_sender=*/false);
  // WIRE 2.5: checked before the peer's progress is believed, which may be progress in another
  // operation.
  if (round != nullptr && header.tag_digest != round->tag_digest) return dispute(now, *round, from);
  if (!progress_.may_have_opened(from, header.opened_below) ||
      !progress_.may_have_opened(from, header.settled_below)) {
    ++state_.counters.refused_progress;
    return;
  }
  progress_.on_collectives(now, from, header.opened_below, header.settled_below);
  if (round == nullptr || round->ended) return without_round(from, header, datagram);
  accept_data(now, *round, from, header, datagram.subspan(wire::kDataHeaderBytes));
}

void Endpoint::without_round(Rank from, const wire::DataHeader& header, ByteSpan datagram) {
  const bool point = header.kind == FlowKind::point;
  const std::uint32_t opened = point ? state_.rounds.receives_opened(from, header.message_tag)
                                     : state_.rounds.opened_below();
  if (point) tags_.note(from, header.message_tag, header.round);
  switch (early_.judge(from, header, opened, datagram)) {
    case EarlyDatagrams::Fate::closed:
      ++state_.counters.closed_round;
      if (point) touch(from, header.message_tag);
      return state_.queue_report(from);  // the sender does not know yet that we need nothing more
    case EarlyDatagrams::Fate::future:
      ++state_.counters.future_round;
      return;
    case EarlyDatagrams::Fate::kept:
      ++state_.counters.early_kept;
      return;
    case EarlyDatagrams::Fate::dropped:
      ++state_.counters.early_dropped;
      return;
  }
}

// The sender means another operation. Our report tells it which one we mean. Until its own report
// says which one it means, a collective cannot end well here.
void Endpoint::dispute(Instant now, Round& round, Rank from) {
  state_.refuse_plan(from);
  if (round.plan->point_to_point() || round.done || round.refuted) return;
  if (round.disputed_by != kNoRank) return;
  round.disputed_by = from;
  inquiry_.arm(now, round);
}

// Returns true if the sender means a flow as long as the receiver does. Of an uneven all_to_all
// only the two ranks know the lengths. So the round fails here, and the report about it tells the
// sender which length was expected.
template <typename Header>
bool Endpoint::same_length(Instant now, Round& round, Rank from, const Header& header) {
  const ReceiveFlow& flow = round.receive(header.kind, from);
  if (!flow.sized) return take_length(now, round, from, header.flow_packets, header.tail);
  const bool same_tail = header.kind == FlowKind::reduce || header.tail == flow.tail;
  if (header.flow_packets == flow.packets && same_tail) return true;
  if (round.plan->in_pairs() && header.flow_packets > 0) {
    const std::uint64_t each = round.client->incoming(header.kind, from).elements_per_packet();
    settling_.doom(now, round,
                   unequal_pair(round, from, (header.flow_packets - 1) * each + header.tail,
                                state_.config.self, round.plan->pair_receives[from]),
                   {from});
  }
  return false;
}

// Takes the length of a message from the first datagram that tells it. Returns false if the length
// makes no sense, or is more than the receive has room for. In the second case the message fails on
// both sides.
bool Endpoint::take_length(Instant now, Round& round, Rank from, std::uint32_t packets,
                           std::uint32_t tail) {
  ReceiveFlow& flow = round.receive(FlowKind::point, from);
  const std::uint64_t each = round.client->incoming(FlowKind::point, from).elements_per_packet();
  if (packets == 0 || packets > limits::kFlowPacketsMax || tail > each) return false;
  if (tail == 0 && packets > 1) return false;
  const std::uint64_t elements = (packets - 1) * each + tail;
  if (elements > round.plan->tag.count) {
    settling_.doom(now, round,
                   too_long(round, from, elements, state_.config.self, round.plan->tag.count),
                   {from});
    return false;
  }
  flow.packets = packets;
  flow.tail = tail;
  flow.sized = true;
  flow.arrived.resize(packets);
  round.client->on_length(elements);
  return true;
}

void Endpoint::touch(Rank from, std::uint32_t tag) {
  PeerMessages* const messages = state_.rounds.messages(from);
  if (messages == nullptr) return;
  if (MessageStream* const stream = messages->find(tag)) messages->touch(*stream);
}

void Endpoint::watch_tag(Instant now, std::uint32_t tag) {
  for (Rank peer = 0; peer < state_.config.size; ++peer) {
    if (peer != state_.config.self) watch(now, peer);
  }
  tags_.watch(tag);
  early_.for_each_message(tag,
                          [&](Rank from, std::uint32_t number) { tags_.note(from, tag, number); });
}

void Endpoint::accept_data(Instant now, Round& round, Rank from, const wire::DataHeader& header,
                           ByteSpan payload) {
  if (header.tag_digest != round.tag_digest) return dispute(now, round, from);  // WIRE 2.5
  if (!round.plan->phase(header.kind).active)
    return state_.refuse_plan(from);  // came before the round
  ReceiveFlow& flow = round.receive(header.kind, from);
  const auto count_late = [&] {
    ++flow.late;
    ++state_.counters.late;
  };
  if (round.disputed_by == from) round.disputed_by = kNoRank;  // the other packet was forged
  if (header.codec != round.plan->phase(header.kind).codec) return state_.refuse_plan(from);
  if (!same_length(now, round, from, header)) return state_.refuse_plan(from);
  if (header.is_parity()) return accept_parity(now, round, from, header, payload);
  if (flow.arrived.test(header.index.value)) {
    ++flow.duplicate;
    ++state_.counters.duplicate;
    return note_last_copy(now, round, from, header);
  }
  if (flow.finished || round.phase(header.kind).settled) {
    return count_late();
  }
  if (std::isnan(flow.weight)) flow.weight = header.weight;
  const bool coded = flow.parity != nullptr && flow.parity->covers_any();
  const bool covered = coded && flow.parity->covers(header.index);
  const ByteSpan lifted =
      covered ? round.client->lift_parity(header.kind, from, header.index) : ByteSpan();
  switch (round.client->accept(from, header, payload)) {
    case Acceptance::accepted:
      break;
    case Acceptance::late:
      return count_late();
    case Acceptance::refused:
      return state_.refuse_plan(from);
  }
  flow.arrived.set(header.index.value);
  ++flow.arrived_count;
  flow.repaired += header.attempt > 0;
  if (covered) {
    recovery_.move(round, header.kind, from, header.index, lifted);
  } else if (coded) {
    recovery_.recover(round, header.kind, from, flow.parity->grid().code_of(header.index));
  }
  if (flow.chunks != nullptr && header.attempt == 0) watch_chunks(now, round, from, header);
  after_arrival(now, round, from, header);
}

// WIRE 5.9: asks at once for lost packets among those that must have left, if the answer comes
// before the first pass is over. Parity need not make up for them then.
void Endpoint::watch_chunks(Instant now, Round& round, Rank from, const wire::DataHeader& header) {
  ReceiveFlow& flow = round.receive(header.kind, from);
  const auto left = flow.chunks->on_packet(now, header.index, header.position);
  if (!left || state_.config.multicast || flow.complete()) return;
  if (flow.chunks->rest(now) < state_.links[from].rtt().smoothed()) return;
  if (flow.ask_early(*left)) state_.outbox.queue_control(from);
}

// The packet was there already, but its last copy says that the pass is over (WIRE 2.12).
void Endpoint::note_last_copy(Instant now, Round& round, Rank from,
                              const wire::DataHeader& header) {
  ReceiveFlow& flow = round.receive(header.kind, from);
  if (!header.ends_first_pass() || flow.ended_pass >= 0 || !flow.open()) return;
  flow.ended_pass = 0;
  flow.last_arrival = now;
  state_.timers.arm_link(
      from, now + state_.links[from].quiet_time(round.plan->phase(header.kind).gives_up()));
}

void Endpoint::after_arrival(Instant now, Round& round, Rank from, const wire::DataHeader& header) {
  ReceiveFlow& flow = round.receive(header.kind, from);
  flow.last_arrival = now;
  flow.fruitless = 0;
  if (flow.tries != 0) {
    flow.tries = 0;
    state_.timers.arm_link(from, now + state_.links[from].rtt().timeout());
  }
  if (header.ends_first_pass()) flow.ended_pass = std::max(flow.ended_pass, 0);
  if (flow.complete()) {
    settling_.finish_receive(now, round, header.kind, from);
    if (round.phase(header.kind).receives_open == 0 || round.done) settling_.advance(now, round);
  } else if (flow.ended_pass >= 0) {
    state_.timers.arm_link(
        from, now + state_.links[from].quiet_time(round.plan->phase(header.kind).gives_up()));
  }
}

void Endpoint::on_end(Instant now, Rank from, const wire::End& end) {
  Round* round =
      state_.rounds.find(end.kind, end.round, end.message_tag, from, /*as_sender=*/false);
  if (round == nullptr) {
    const bool point = end.kind == FlowKind::point;
    const std::uint32_t opened =
        point ? state_.rounds.receives_opened(from, end.message_tag) : state_.rounds.opened_below();
    if (point) tags_.note(from, end.message_tag, end.round);
    if (after(end.round + 1, opened)) return;  // not opened here yet: the sender repeats it
    if (point) touch(from, end.message_tag);
    return tell_settled(from);
  }
  if (end.kind != FlowKind::point && end.tag_digest != round->tag_digest)
    return dispute(now, *round, from);
  ReceiveFlow& flow = round->receive(end.kind, from);
  if (!same_length(now, *round, from, end)) return state_.refuse_plan(from);
  if (std::isnan(flow.weight)) flow.weight = end.weight;
  if (flow.finished) return tell_settled(from);
  flow.ended_pass = std::max<std::int32_t>(flow.ended_pass, end.attempt);
  state_.timers.arm_link(
      from, now + state_.links[from].quiet_time(round->plan->phase(end.kind).gives_up()));
}

// Sends one report for every END that came. A peer that hears no report sends more ENDs.
void Endpoint::tell_settled(Rank peer) {
  ++state_.links[peer].report_copies;
  state_.queue_report(peer);
}

void Endpoint::on_repair(Instant now, Rank from, const wire::Repair& repair, ByteSpan words) {
  ++state_.counters.repair_requests;
  Round* round =
      state_.rounds.find(repair.kind, repair.round, repair.message_tag, from, /*as_sender=*/true);
  // The peer may not know that we gave the collective up. No report tells that of messages.
  if (round == nullptr) {
    if (repair.kind != FlowKind::point && state_.rounds.may_have_given_up(repair.round))
      state_.queue_report(from);
    return;
  }
  if (!round->plan->phase(repair.kind).repairable) return;
  // WIRE 5.5: a rank that asks has opened the operation. The report that said so may be lost, and
  // may not be repeated: a rank that heard the end of a pass that was multicast for others sends
  // none. We would wait for its gate, and it for our answer.
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

// WIRE 6.10: a flood of probes is answered by a few reports, the last of them after the last probe.
void Endpoint::on_probe(Instant now, Rank from) {
  Link& link = state_.links[from];
  if (now >= link.next_answer_at) return answer_probe(now, from);
  link.answer_at = link.next_answer_at;
  state_.timers.arm_link(from, link.answer_at);
}

void Endpoint::answer_probe(Instant now, Rank peer) {
  Link& link = state_.links[peer];
  link.answer_at = Instant::infinite_future();
  link.next_answer_at = now + link.rtt().smoothed() / limits::kProbeAnswersPerRoundTrip;
  state_.queue_report(peer);
}

void Endpoint::on_goodbye(Instant now, Rank from) {
  state_.lose(now, from);
  state_.queue_report(from);  // WIRE 6.3: it asks until it is answered
  for (Round* round : state_.rounds.collectives()) settling_.on_peer_left_round(now, *round, from);
  const PeerMessages* messages = state_.rounds.messages(from);
  if (messages == nullptr) return;
  messages->for_each_open(
      [&](Round& message) { settling_.on_peer_left_round(now, message, from); });
}

}  // namespace leeway::protocol
