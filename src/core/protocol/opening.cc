#include "protocol/opening.h"

#include <algorithm>

#include "base/contracts.h"
#include "protocol/coding.h"

namespace leeway::protocol {

Round* Opening::open(Instant now, const RoundPlan& plan, RoundClient& client) {
  const bool idle_before = state_.rounds.idle();
  Round* const round = state_.rounds.open(plan, client, now);
  if (round == nullptr) return nullptr;
  if (idle_before) busy_since_ = now;
  set_up_flows(*round);
  ++state_.counters.rounds_opened;
  return round;
}

void Opening::reopen(Instant now, Round& round, const RoundPlan& plan) {
  LEEWAY_ASSERT(!round.ended && !plan.point_to_point());
  state_.timers.disarm_round(round);
  round.reset(round.number, plan, round.client, state_.config.size, now);
  set_up_flows(round);
}

void Opening::announce(Instant now, Round& round) {
  if (round.plan->point_to_point()) {
    state_.timers.arm_link(round.plan->point_peer, round.plan->deadline);
    return start_messages(now);
  }
  // Each rank begins with the next higher rank, so that no receiver is everybody's first.
  bool strangers = false;
  for (int step = 1; step < state_.config.size; ++step) {
    const auto peer = static_cast<Rank>((state_.config.self + step) % state_.config.size);
    start_towards(round, peer);
    strangers = strangers || !round.exchanges_with(peer);
  }
  state_.queue_group();
  if (round.plan->needs_every_rank && strangers) inquiry_.arm(now, round);
  state_.timers.arm_round(round, round.plan->deadline);
  for (const FlowKind kind : round.plan->active_kinds())
    state_.timers.arm_round(round, round.plan->phase(kind).deadline);
  for (Rank peer = 0; peer < state_.config.size; ++peer) {
    state_.timers.arm_link(peer, now + state_.links[peer].rtt().timeout());
    if (peer != state_.config.self) liveness_.watch(now, peer);
  }
}

void Opening::start_towards(Round& round, Rank peer) {
  bool sends = false;
  bool receives = false;
  bool needs_gate = false;
  for (const FlowKind kind : round.plan->active_kinds()) {
    sends |= round.send(kind, peer).open();
    receives |= round.receive(kind, peer).open();
    needs_gate |= round.receive(kind, peer).packets > limits::kEagerPackets;
  }
  if (sends) {
    if (!state_.gate_open(round, peer)) ++round.gates_closed;
    state_.outbox.queue_data(peer);
  }
  // WIRE 3.3: a report announces the operation to a peer whose flow to us must wait for the ready
  // gate, or that sends to us and gets nothing from us. Other peers learn of the operation from our
  // data. If these data are lost, our time-out sends the report, and the peer repeats its END.
  if (needs_gate || (receives && !sends)) state_.queue_report(peer);
}

// Starts messages that have begun to talk. From now on they are sent, asked for and listed in
// reports.
void Opening::start_messages(Instant now) {
  while (Round* const message = state_.rounds.take_starting()) {
    if (message->ended) continue;
    const Rank peer = message->plan->point_peer;
    start_towards(*message, peer);
    // A message may have waited for its turn for longer than the time-out, so that its timer is due
    // already.
    const Instant due = message->opened_at + state_.links[peer].rtt().timeout();
    state_.timers.arm_link(peer, std::max(now, due));
    liveness_.watch(now, peer);
  }
}

void Opening::set_up_flows(Round& round) {
  for (const FlowKind kind : round.plan->active_kinds()) set_up_flows(round, kind);
}

void Opening::set_up_flows(Round& round, FlowKind kind) {
  for (Rank peer = round.first_peer(); peer < round.end_peer(state_.config.size); ++peer) {
    if (peer == state_.config.self) {
      round.send(kind, peer) = SendFlow{};
      round.receive(kind, peer) = ReceiveFlow{};
      continue;
    }
    set_up_send(round, kind, peer);
    set_up_receive(round, kind, peer);
  }
  PhaseState& phase = round.phase(kind);
  LEEWAY_ASSERT(phase.passes_open == phase.sends_open && !phase.settled);
  if (!round.plan->point_to_point() && state_.group.form(phase, round.plan->phase(kind)))
    phase.group.cursor =
        order_.cursor(round, kind, kEveryRank, phase.send[phase.group.first_member].grid);
}

void Opening::set_up_send(Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  Bitmap wanted = std::move(flow.wanted);  // reuses their memory
  Bitmap left = std::move(flow.left);
  flow = SendFlow{};
  flow.wanted = std::move(wanted);
  flow.left = std::move(left);
  flow.left.resize(0);
  flow.grid = round.client->outgoing(kind, peer);
  flow.packets = flow.grid.packets();
  flow.weight = static_cast<float>(round.plan->weight_for(peer));
  if (flow.packets == 0) return;
  if (state_.links[peer].gone) {
    flow.settled = true;
    return;
  }
  ++round.phase(kind).sends_open;
  ++round.phase(kind).passes_open;
  if (round.plan->phase(kind).repairable) flow.wanted.resize(flow.packets);
  if (may_be_coded(round.plan->phase(kind), flow.packets)) flow.left.resize(flow.packets);
  flow.cursor = order_.cursor(round, kind, peer, flow.grid);
}

void Opening::set_up_receive(Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  Bitmap arrived = std::move(flow.arrived);
  Bitmap early = std::move(flow.early);
  auto parity = std::move(flow.parity);
  auto chunks = std::move(flow.chunks);
  flow = ReceiveFlow{};
  flow.arrived = std::move(arrived);
  flow.early = std::move(early);
  const schedule::PacketGrid grid = round.client->incoming(kind, peer);
  flow.packets = grid.packets();
  flow.tail = grid.tail();
  flow.sized = kind != FlowKind::point;
  flow.required = round.client->required(kind, peer);
  flow.last_arrival = round.opened_at;
  if (flow.packets == 0) return;
  flow.arrived.resize(flow.packets);
  if (may_be_coded(round.plan->phase(kind), flow.packets)) {
    flow.parity = parity != nullptr ? std::move(parity) : std::make_unique<ParityLedger>();
    flow.parity->reset(flow.packets);
    flow.chunks = chunks != nullptr ? std::move(chunks) : std::make_unique<ChunkWatch>();
    *flow.chunks = ChunkWatch(grid, order_.inner_key(round.number, kind, peer, state_.config.self));
    flow.early.resize(flow.packets);
  }
  flow.abandoned = state_.links[peer].gone;
  ++round.phase(kind).receives_open;
}

void Opening::reap_ended(Instant now) {
  start_messages(now);
  while (state_.rounds.any_ended()) {
    RoundClient* const client = state_.rounds.take_ended();
    start_messages(now);
    client->on_closed();
  }
}

}  // namespace leeway::protocol
