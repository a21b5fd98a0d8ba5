// Timers: deadlines, quiet, asking again, delayed reports. All periods come from the measured round
// trips and arrival gaps of the link in question.
#include <algorithm>

#include "base/contracts.h"
#include "protocol/awaited.h"
#include "protocol/endpoint.h"
#include "protocol/mismatch.h"

namespace leeway::protocol {
std::optional<Instant> Endpoint::next_wake() const {
  if (state_.timers.next() == Instant::infinite_future()) return std::nullopt;
  return state_.timers.next();
}

// Looks only at timers that are due. A timer that is armed for this very moment meanwhile may wait
// for the next call.
void Endpoint::on_wake(Instant now) {
  for (std::size_t i = 0; i < state_.timers.count(); ++i) {
    const auto due = state_.timers.take_due(now);
    if (!due) return;
    switch (due->what) {
      case Timers::What::round:
        if (Round* const round = state_.rounds.in_slot(due->index)) wake_round(now, *round);
        break;
      case Timers::What::group_probe:
        if (state_.group.probe_at() <= now) state_.group.on_probe_time();
        state_.timers.arm_group_probe(state_.group.probe_at());
        break;
      case Timers::What::leave:
        wake_leave(now);
        break;
      case Timers::What::link:
        wake_link(now, static_cast<Rank>(due->index));
        break;
    }
    reap(now);
  }
}

void Endpoint::wake_link(Instant now, Rank peer) {
  Link& link = state_.links[peer];
  if (link.report_at <= now) {
    link.report_at = Instant::infinite_future();
    state_.queue_report(peer);
  }
  if (link.answer_at <= now) answer_probe(now, peer);
  if (link.probe_at <= now) {
    state_.queue_probe(peer);
    link.probe_at = now + link.rtt().timeout(++link.probe_tries);
  }
  state_.timers.arm_link(peer, std::min({link.report_at, link.answer_at, link.probe_at}));
  wake_watch(now, peer);
  settling_.expire_messages(now, peer);
  for (Round* round : state_.rounds.with(peer)) {
    if (!round->ended) wake_flows(now, *round, peer);
  }
  if (!state_.departure.parting() || link.gone || state_.departure.parted(peer)) return;
  const Departure::Wake farewell = state_.departure.on_wake(now, peer, link.rtt());
  if (farewell.say) state_.outbox.queue_control(peer);
  state_.timers.arm_link(peer, farewell.again_at);
}

void Endpoint::wake_flows(Instant now, Round& round, Rank peer) {
  if (round.plan->point_to_point()) {
    if (now >= round.fail_at) return settling_.finish(now, round, round.failure);
    state_.timers.arm_link(peer, round.fail_at);
  }
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    const auto kind = static_cast<FlowKind>(k);
    if (!round.plan->phases[k].active) continue;
    wake_receive(now, round, kind, peer);
    if (round.ended) return;  // the round failed
    wake_send(now, round, kind, peer);
  }
  settling_.advance(now, round);
}

// Handles a collective's own timer: its deadlines, inquiries, and members that hold up its
// multicast.
void Endpoint::wake_round(Instant now, Round& round) {
  if (now >= round.plan->deadline) return settling_.on_deadline(now, round);
  if (now >= round.inquire_at) inquiry_.on_time(now, round);
  state_.timers.arm_round(round, std::min(round.plan->deadline, round.inquire_at));
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    const auto kind = static_cast<FlowKind>(k);
    if (!round.plan->phases[k].active) continue;
    if (!round.phases[k].settled) {
      if (now >= round.plan->phases[k].deadline) {
        settling_.cut_phase(now, round, kind);
      } else {
        state_.timers.arm_round(round, round.plan->phases[k].deadline);
      }
    }
    wake_group(now, round, kind);
  }
  settling_.advance(now, round);
}

void Endpoint::wake_receive(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  if (!flow.open()) return;
  const Link& link = state_.links[peer];
  const PhasePlan& plan = round.plan->phase(kind);
  // The answer to a request may have come although its end was lost. Then nothing is left to ask
  // for.
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
  // Waits for the first pass or for the answer to a request. Silence may mean a lost datagram,
  // theirs or ours.
  Instant since = std::max(flow.ask_at, flow.last_arrival);
  // One report announces all posted receives.
  if (kind == FlowKind::point && flow.ended_pass < 0)
    since = std::max(since, state_.rounds.messages(peer)->reported_at);
  const Instant due = since + link.rtt().timeout(flow.tries);
  if (now < due) return state_.timers.arm_link(peer, due);
  ask_again(now, round, kind, peer);
}

void Endpoint::on_abandoned(Instant now, Round& round, FlowKind kind, Rank peer) {
  if (round.plan->phase(kind).delivery != Delivery::Kind::exact ||
      round.plan->tag.delivery != Delivery::Kind::exact) {
    return settling_.finish_receive(now, round, kind, peer);
  }
  if (round.told.by != kNoRank) return settling_.end_as_told(now, round);
  if (inquiry_.may_mean_another(round, kind, peer))
    return inquiry_.ask_what_they_mean(now, round, kind, peer);
  settling_.finish(now, round,
                   left_early(state_.config.self, round, kind, peer, state_.config.names), {peer});
}

// Before the first pass has ended, says again that the operation is open here. After it, asks for
// missing packets.
void Endpoint::ask_again(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  if (flow.ended_pass < 0) {
    // A peer that has opened the operation would send at once if it knew that we have. Packets of a
    // spread may not exist there yet.
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

// WIRE 5.6: handles a peer that did not report that it opened the operation, while its copy of
// multicast packets waits for that. The peer may have heard the multicast, closed the operation and
// said so in a report that was lost. No datagram would mention the operation again, so this asks.
void Endpoint::ask_gated(Instant now, Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (flow.end_at == Instant::infinite_future()) return;
  if (now < flow.end_at) return state_.timers.arm_link(peer, flow.end_at);
  flow.end_at = Instant::infinite_future();
  if (state_.gate_open(round, peer)) return;
  state_.queue_probe(peer);
  flow.end_at = now + state_.links[peer].rtt().timeout(flow.end_tries++);
  state_.timers.arm_link(peer, flow.end_at);
}

void Endpoint::wake_send(Instant now, Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (!flow.open()) return;
  if (!flow.pass_over) return ask_gated(now, round, kind, peer);
  if (now < flow.end_at) return state_.timers.arm_link(peer, flow.end_at);
  flow.end_at = Instant::infinite_future();  // set again when the END is written
  flow.end_due = true;
  state_.outbox.queue_control(peer);
}

// Parts if the group can do without this rank; else looks again later.
void Endpoint::wake_leave(Instant now) {
  if (!state_.departure.serving()) return;
  Departure::Group group{
      .idle = idle(), .silence = state_.departure.served(now), .slowest = state_.slowest_timeout()};
  group.content = true;
  for (Rank peer = 0; peer < state_.config.size; ++peer) {
    const Link& link = state_.links[peer];
    if (link.heard) group.silence = std::min(group.silence, link.silence(now));
    group.first &= !link.gone;
    group.content &= link.content || link.gone || peer == state_.config.self;
  }
  if (group.first && state_.departure.asks_peers(now, group)) {
    for (Rank peer = 0; peer < state_.config.size; ++peer) {
      if (peer == state_.config.self) continue;
      state_.queue_probe(peer);
    }
  }
  const auto again_at = state_.departure.ask_again(now, group);
  again_at ? state_.timers.arm_leave(*again_at) : say_goodbye(now);
}

}  // namespace leeway::protocol
