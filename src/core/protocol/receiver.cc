#include "protocol/receiver.h"

#include <algorithm>
#include <cmath>

#include "base/contracts.h"
#include "protocol/awaited.h"
#include "protocol/mismatch.h"

namespace leeway::protocol {

void Receiver::on_data(Instant now, Rank from, const wire::DataHeader& header, ByteSpan datagram) {
  ++state_.counters.data_received;
  Round* const round =
      state_.rounds.find(header.kind, header.round, header.message_tag, from, /*as_sender=*/false);
  // WIRE 2.5: checks the digest first. If it differs, the header's numbers of opened and settled
  // collectives may count other operations, so they are not believed.
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

void Receiver::without_round(Rank from, const wire::DataHeader& header, ByteSpan datagram) {
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

// The sender means another operation. Our report tells it which one we mean. Until the sender's own
// report says which one it means, a collective does not end here before its deadline.
void Receiver::dispute(Instant now, Round& round, Rank from) {
  state_.refuse_plan(from);
  if (round.plan->point_to_point() || round.done || round.refuted) return;
  if (round.disputed_by != kNoRank) return;
  round.disputed_by = from;
  inquiry_.arm(now, round);
}

// Returns true if the datagram gives the flow the length that this rank expects. In an uneven
// all_to_all only the two ranks know that length. So a difference fails the round here, and the
// report about it tells the sender which length was expected.
template <typename Header>
bool Receiver::same_length(Instant now, Round& round, Rank from, const Header& header) {
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

// Sets the length of a message from the first datagram that states it. Returns false if the length
// makes no sense, or is more than the receive has room for. A message that is too long fails on
// both sides.
bool Receiver::take_length(Instant now, Round& round, Rank from, std::uint32_t packets,
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
  LEEWAY_ASSERT(flow.arrived_count == 0);
  flow.packets = packets;
  flow.tail = tail;
  flow.sized = true;
  flow.arrived.resize(packets);
  round.client->on_length(elements);
  return true;
}

void Receiver::touch(Rank from, std::uint32_t tag) {
  PeerMessages* const messages = state_.rounds.messages(from);
  if (messages == nullptr) return;
  if (MessageStream* const stream = messages->find(tag)) messages->touch(*stream);
}

void Receiver::accept_data(Instant now, Round& round, Rank from, const wire::DataHeader& header,
                           ByteSpan payload) {
  if (header.tag_digest != round.tag_digest) return dispute(now, round, from);  // WIRE 2.5
  if (header.kind == FlowKind::point) state_.rounds.messages(from)->mention(round);
  if (!round.plan->phase(header.kind).active)
    return state_.refuse_plan(from);  // the packet was kept since before the round opened
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

// WIRE 5.9: asks at once for packets that must have left and did not come, if the answer can come
// before the first pass is over. Parity need not make up for these packets.
void Receiver::watch_chunks(Instant now, Round& round, Rank from, const wire::DataHeader& header) {
  ReceiveFlow& flow = round.receive(header.kind, from);
  const auto left = flow.chunks->on_packet(now, header.index, header.position);
  if (!left || state_.config.multicast || flow.complete()) return;
  if (flow.chunks->rest(now) < state_.links[from].rtt().smoothed()) return;
  if (flow.ask_early(*left)) state_.outbox.queue_control(from);
}

// Handles another copy of a packet that has arrived. The flow's last copy says that the pass is
// over (WIRE 2.12).
void Receiver::note_last_copy(Instant now, Round& round, Rank from,
                              const wire::DataHeader& header) {
  ReceiveFlow& flow = round.receive(header.kind, from);
  if (!header.ends_first_pass() || flow.ended_pass >= 0 || !flow.open()) return;
  flow.ended_pass = 0;
  flow.last_arrival = now;
  state_.arm_quiet(now, round, header.kind, from);
}

void Receiver::accept_parity(Instant now, Round& round, Rank from, const wire::DataHeader& header,
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

void Receiver::after_arrival(Instant now, Round& round, Rank from, const wire::DataHeader& header) {
  ReceiveFlow& flow = round.receive(header.kind, from);
  LEEWAY_ASSERT(!flow.finished && flow.arrived_count <= flow.packets);
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
    state_.arm_quiet(now, round, header.kind, from);
  }
}

void Receiver::on_end(Instant now, Rank from, const wire::End& end) {
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
  if (end.kind == FlowKind::point) state_.rounds.messages(from)->mention(*round);
  ReceiveFlow& flow = round->receive(end.kind, from);
  if (!same_length(now, *round, from, end)) return state_.refuse_plan(from);
  if (std::isnan(flow.weight)) flow.weight = end.weight;
  if (flow.finished) return tell_settled(from);
  flow.ended_pass = std::max<std::int32_t>(flow.ended_pass, end.attempt);
  state_.arm_quiet(now, *round, end.kind, from);
}

// Makes one copy of a report due for every END that came. A peer whose reports are lost sends more
// ENDs, and so gets more reports.
void Receiver::tell_settled(Rank peer) {
  ++state_.links[peer].report_copies;
  state_.queue_report(peer);
}

void Receiver::note_early(std::uint32_t tag) {
  early_.for_each_message(tag,
                          [&](Rank from, std::uint32_t number) { tags_.note(from, tag, number); });
}

void Receiver::replay_early(Instant now, Round& round) {
  const auto use = [&](Rank from, ByteSpan datagram) {
    wire::DataHeader header;
    ByteSpan payload;
    if (round.ended || wire::decode_data(datagram, header, payload) != wire::Refusal::none) return;
    accept_data(now, round, from, header, payload);
  };
  if (!round.plan->point_to_point()) {
    early_.take_collective(round.number, use);
  } else if (!round.plan->point_send) {
    early_.take_message(round.plan->point_peer, round.plan->message_tag, round.number, use);
  }
}

void Receiver::wake(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  if (!flow.open()) return;
  const Link& link = state_.links[peer];
  const PhasePlan& plan = round.plan->phase(kind);
  // The answer to a request may be complete although its END was lost. Then nothing is left to ask.
  const bool answered =
      flow.requested_pass > 0 && !flow.needs_more(plan.delivery, plan.loss_max, plan.fetch_empty);
  if (flow.abandoned || flow.ended_pass >= flow.awaited_pass() || answered) {
    Instant quiet_at = flow.last_arrival + link.quiet_time(plan.gives_up());
    if (flow.fruitless > ReceiveFlow::kFruitlessMost)
      quiet_at = std::max(
          quiet_at, flow.ask_at + link.rtt().timeout(flow.fruitless - ReceiveFlow::kFruitlessMost));
    if (now < quiet_at) return state_.timers.arm_link(peer, quiet_at);
    if (!flow.needs_more(plan.delivery, plan.loss_max, plan.fetch_empty))
      return settling_.finish_receive(now, round, kind, peer);
    if (flow.abandoned) return on_abandoned(now, round, kind, peer);
    return ask_again(now, round, kind, peer);
  }
  // After a time-out without a packet, asks again: a datagram of either side may be lost.
  Instant since = std::max(flow.ask_at, flow.last_arrival);
  // A report announces all posted receives. So for a message of which no pass has ended, sending a
  // report counts as asking, and the time-out starts anew.
  if (kind == FlowKind::point && flow.ended_pass < 0)
    since = std::max(since, state_.rounds.messages(peer)->reported_at);
  const Instant due = since + link.rtt().timeout(flow.tries);
  if (now < due) return state_.timers.arm_link(peer, due);
  ask_again(now, round, kind, peer);
}

void Receiver::on_abandoned(Instant now, Round& round, FlowKind kind, Rank peer) {
  if (round.plan->phase(kind).delivery != Delivery::Kind::exact ||
      round.plan->tag.delivery != Delivery::Kind::exact) {
    return settling_.finish_receive(now, round, kind, peer);
  }
  if (round.told.by != kNoRank) return settling_.end_as_told(now, round);
  if (inquiry_.may_mean_another(round, kind, peer))
    return inquiry_.ask_what_they_mean(now, round, kind, peer);
  settling_.finish(now, round, left_early(state_, round, kind, peer), {peer});
}

// Before the first pass has ended, reports again that the operation is open here. Afterwards asks
// for missing packets.
void Receiver::ask_again(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  if (flow.ended_pass < 0) {
    // A peer that has opened the operation sends at once when it hears that we have. If it is still
    // silent, our reports may be lost, so this one goes in copies. Packets of a spread half may not
    // exist at the peer yet, so their absence proves nothing.
    const bool at_once = kind == FlowKind::reduce || !round.plan->phase(FlowKind::reduce).active;
    if (flow.tries > 0 && at_once && state_.gate_open(round, peer))
      state_.links[peer].report_copies = state_.links[peer].copies(flow.tries);
    state_.queue_report(peer);
  } else {
    flow.ask_for_all();
    ++flow.fruitless;
    state_.outbox.queue_control(peer);
  }
  flow.ask_at = now;
  state_.timers.arm_link(peer, now + state_.links[peer].rtt().timeout(++flow.tries));
}

}  // namespace leeway::protocol
