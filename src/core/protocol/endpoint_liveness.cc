// Liveness of peers, and what becomes of operations when a peer dies (WIRE 6.6, 6.7).
#include "base/contracts.h"
#include "protocol/awaited.h"
#include "protocol/endpoint.h"
#include "protocol/mismatch.h"

namespace leeway::protocol {

// Starts to watch a peer from which something is expected.
void Endpoint::watch(Instant now, Rank peer) {
  Link& link = state_.links[peer];
  if (state_.config.peer_timeout == Duration(0) || link.watch.on() || link.gone) return;
  state_.timers.arm_link(peer, link.watch.start(now, link.rtt(), state_.config.peer_timeout));
}

void Endpoint::watch_all(Instant now, bool on) {
  watched_from_outside_ = on;
  for (Rank peer = 0; on && peer < state_.config.size; ++peer) {
    if (peer != state_.config.self) watch(now, peer);
  }
}

bool Endpoint::expects(Rank peer) const {
  if (watched_from_outside_ || tags_.any()) return true;
  for (const Round* round : state_.rounds.with(peer)) {
    if (round->ended) continue;
    if (round->plan->needs_every_rank && !round->done && !round->exchanges_with(peer)) return true;
    for (int k = 0; k < wire::kFlowKinds; ++k) {
      if (!round->plan->phases[k].active) continue;
      const auto kind = static_cast<FlowKind>(k);
      if (round->receive(kind, peer).open() || round->send(kind, peer).open()) return true;
    }
  }
  return false;
}

Endpoint::Hold Endpoint::hold(Rank peer) const {
  Hold found = Hold::nothing;
  for (const Round* round : state_.rounds.with(peer)) {
    if (round->ended) continue;
    for (int k = 0; k < wire::kFlowKinds; ++k) {
      if (!round->plan->phases[k].active) continue;
      const auto kind = static_cast<FlowKind>(k);
      const SendFlow& send = round->send(kind, peer);
      const bool before = kind == FlowKind::spread &&
                          round->plan->phases[static_cast<int>(FlowKind::reduce)].active &&
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

void Endpoint::wake_watch(Instant now, Rank peer) {
  Link& link = state_.links[peer];
  // A rank that says good-bye asks nothing else (WIRE 6.4), so it judges no peer by silence.
  if (!link.watch.on() || link.gone || state_.departure.parting()) return;
  const Watch::Look look = link.watch.look(now, link.path().heard_at(), expects(peer), link.rtt(),
                                           state_.config.peer_timeout);
  switch (look.verdict) {
    case Watch::Look::Verdict::lives:
      break;
    case Watch::Look::Verdict::probe:
      state_.queue_probe(peer);
      break;
    case Watch::Look::Verdict::dead:
      return bury(now, peer);
  }
  state_.timers.arm_link(peer, look.again_at);
}

bool Endpoint::all_gone() const {
  for (Rank peer = 0; peer < state_.config.size; ++peer) {
    if (peer != state_.config.self && !state_.links[peer].gone) return false;
  }
  return true;
}

void Endpoint::bury(Instant now, Rank peer) {
  Link& link = state_.links[peer];
  link.path().give_up();
  if (link.gone) return;
  state_.lose(now, peer);
  link.dead = true;
  ++state_.counters.peers_given_up;
  if (first_death_.ok()) {
    first_dead_ = peer;
    first_death_ = Status::error(
        StatusCode::kPeerLost, "rank %u: rank %u is dead: it gave no sign of life for %.1f s",
        known_as(state_.config.names, state_.config.self), known_as(state_.config.names, peer),
        static_cast<double>(state_.config.peer_timeout.count()) / 1e9);
  }
  lose_in_all_rounds(now, peer);
  reap(now);
}

void Endpoint::lose_in_all_rounds(Instant now, Rank peer) {
  for (Round* round : state_.rounds.collectives()) lose_peer(now, *round, peer);
  const PeerMessages* messages = state_.rounds.messages(peer);
  if (messages != nullptr)
    messages->for_each_open([&](Round& message) { lose_peer(now, message, peer); });
}

Status Endpoint::loss_of(const Round& round, Rank peer) const {
  return state_.links[peer].gave_us_up ? gave_up_by(peer)
                                       : died(state_.config.self, round, peer,
                                              state_.config.peer_timeout, state_.config.names);
}

// An exact operation can no longer be complete and fails. A lossy one goes on without the peer.
void Endpoint::lose_peer(Instant now, Round& round, Rank peer) {
  if (round.ended) return;
  if (!round.done && round.plan->tag.delivery == Delivery::Kind::exact)
    return settling_.finish(now, round, loss_of(round, peer), {peer});
  settling_.on_peer_left_round(now, round, peer);
  settling_.end_abandoned(now, round, peer);
}

// Starts a round without the peers that had left before: it expects nothing more of them.
void Endpoint::start_without(Instant now, Round& round) {
  const bool exact = round.plan->tag.delivery == Delivery::Kind::exact;
  for (Rank peer = round.first_peer(); peer < round.end_peer(state_.config.size); ++peer) {
    if (round.ended) return;
    const Link& link = state_.links[peer];
    if (peer == state_.config.self || !link.gone) continue;
    if ((link.dead || link.gave_us_up) && exact)
      return settling_.finish(now, round, loss_of(round, peer), {peer});
    // Packets that it sent before it left may still be on their way.
    if (exact) state_.timers.arm_link(peer, now + link.quiet_time(/*gives_up=*/false));
    if (!exact) settling_.end_abandoned(now, round, peer);
  }
}

// A process that was given up speaks again. It is told so, and its datagrams are not used.
void Endpoint::answer_dead(Rank from, wire::PacketType type) {
  if (type == wire::PacketType::given_up || type == wire::PacketType::goodbye) return;
  state_.links[from].given_up_due = true;
  state_.outbox.queue_control(from);
}

// The peer went on without us. Once most others have, our open and later rounds have no group.
// Before that only this peer counts as gone, so that one faulty member ends no calls.
void Endpoint::on_given_up(Instant now, Rank from) {
  Link& link = state_.links[from];
  if (link.gave_us_up || !given_up_.ok() || state_.departure.parting()) return;
  link.gave_us_up = true;
  const int others = state_.config.size - 1;
  if (2 * ++gave_us_up_ <= others) return lose_group_member(now, from);
  given_up_ = gave_up_by(from);
  cancel_all(now, given_up_);
  if (state_.departure.serving()) say_goodbye(now);
}

void Endpoint::lose_group_member(Instant now, Rank from) {
  state_.lose(now, from);
  lose_in_all_rounds(now, from);
}

Status Endpoint::gave_up_by(Rank peer) const {
  return Status::error(StatusCode::kPeerLost,
                       "rank %u: rank %u %s Close this communicator; a group takes nobody back",
                       known_as(state_.config.names, state_.config.self),
                       known_as(state_.config.names, peer), kGaveUsUp);
}

}  // namespace leeway::protocol
