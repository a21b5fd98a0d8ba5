// Liveness of peers, and what becomes of operations when a peer dies (WIRE 6.6, 6.7).
#include "base/contracts.h"
#include "protocol/awaited.h"
#include "protocol/endpoint.h"
#include "protocol/mismatch.h"

namespace leeway::protocol {

// Starts to watch a peer from which something is expected.
void Endpoint::watch(Instant now, Rank peer) {
  Link& link = links_[peer];
  if (config_.peer_timeout == Duration(0) || link.watch.on() || link.gone) return;
  timers_.arm_link(peer, link.watch.start(now, link.rtt(), config_.peer_timeout));
}

void Endpoint::watch_all(Instant now, bool on) {
  watched_from_outside_ = on;
  for (Rank peer = 0; on && peer < config_.size; ++peer) {
    if (peer != config_.self) watch(now, peer);
  }
}

bool Endpoint::expects(Rank peer) const {
  if (watched_from_outside_ || !watched_tags_.empty()) return true;
  for (const Round* round : rounds_.with(peer)) {
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
  for (const Round* round : rounds_.with(peer)) {
    if (round->ended) continue;
    for (int k = 0; k < wire::kFlowKinds; ++k) {
      if (!round->plan->phases[k].active) continue;
      const auto kind = static_cast<FlowKind>(k);
      const SendFlow& send = round->send(kind, peer);
      const bool before = kind == FlowKind::spread &&
                          round->plan->phases[static_cast<int>(FlowKind::reduce)].active &&
                          !round->phase(FlowKind::reduce).settled;
      if (send.open() && !send.pass_over && !before) {
        if (!gate_open(*round, peer)) return Hold::gate;
        if (links_[peer].path().held()) return Hold::relay;
        return links_[peer].path().credit() == 0 ? Hold::credit : Hold::turn;
      }
      if (send.open() || round->receive(kind, peer).open()) found = Hold::answer;
    }
  }
  return found;
}

void Endpoint::wake_watch(Instant now, Rank peer) {
  Link& link = links_[peer];
  // A rank that says good-bye asks nothing else (WIRE 6.4), so it judges no peer by silence.
  if (!link.watch.on() || link.gone || departure_.parting()) return;
  const Watch::Look look =
      link.watch.look(now, link.path().heard_at(), expects(peer), link.rtt(), config_.peer_timeout);
  switch (look.verdict) {
    case Watch::Look::Verdict::lives:
      break;
    case Watch::Look::Verdict::probe:
      link.probe_due = true;
      outbox_.queue_control(peer);
      break;
    case Watch::Look::Verdict::dead:
      return bury(now, peer);
  }
  timers_.arm_link(peer, look.again_at);
}

bool Endpoint::all_gone() const {
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer != config_.self && !links_[peer].gone) return false;
  }
  return true;
}

void Endpoint::bury(Instant now, Rank peer) {
  Link& link = links_[peer];
  link.path().give_up();
  if (link.gone) return;
  link.gone = link.dead = any_gone_ = true;
  ++counters_.peers_given_up;
  if (first_death_.ok()) {
    first_dead_ = peer;
    first_death_ = Status::error(
        StatusCode::kPeerLost, "rank %u: rank %u is dead: it gave no sign of life for %.1f s",
        known_as(config_.names, config_.self), known_as(config_.names, peer),
        static_cast<double>(config_.peer_timeout.count()) / 1e9);
  }
  if (departure_.serving()) timers_.arm_leave(now);
  lose_in_all_rounds(now, peer);
  reap(now);
}

void Endpoint::lose_in_all_rounds(Instant now, Rank peer) {
  for (Round* round : rounds_.collectives()) lose_peer(now, *round, peer);
  const PeerMessages* messages = rounds_.messages(peer);
  if (messages != nullptr)
    messages->for_each_open([&](Round& message) { lose_peer(now, message, peer); });
}

Status Endpoint::loss_of(const Round& round, Rank peer) const {
  return links_[peer].gave_us_up
             ? gave_up_by(peer)
             : died(config_.self, round, peer, config_.peer_timeout, config_.names);
}

// An exact operation can no longer be complete and fails. A lossy one goes on without the peer.
void Endpoint::lose_peer(Instant now, Round& round, Rank peer) {
  if (round.ended) return;
  if (!round.done && round.plan->tag.delivery == Delivery::Kind::exact)
    return finish(now, round, loss_of(round, peer), {peer});
  on_peer_left_round(now, round, peer);
  end_abandoned(now, round, peer);
}

// Starts a round without the peers that had left before: it expects nothing more of them.
void Endpoint::start_without(Instant now, Round& round) {
  const bool exact = round.plan->tag.delivery == Delivery::Kind::exact;
  for (Rank peer = round.first_peer(); peer < round.end_peer(config_.size); ++peer) {
    if (round.ended) return;
    const Link& link = links_[peer];
    if (peer == config_.self || !link.gone) continue;
    if ((link.dead || link.gave_us_up) && exact)
      return finish(now, round, loss_of(round, peer), {peer});
    // Packets that it sent before it left may still be on their way.
    if (exact) timers_.arm_link(peer, now + link.quiet_time(/*gives_up=*/false));
    if (!exact) end_abandoned(now, round, peer);
  }
}

void Endpoint::end_abandoned(Instant now, Round& round, Rank peer) {
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    if (!round.plan->phases[k].active || round.ended) continue;
    const auto kind = static_cast<FlowKind>(k);
    const ReceiveFlow& flow = round.receive(kind, peer);
    if (flow.open() && flow.abandoned) finish_receive(now, round, kind, peer);
  }
  advance(now, round);
}

// A process that was given up speaks again. It is told so, and its datagrams are not used.
void Endpoint::answer_dead(Rank from, wire::PacketType type) {
  if (type == wire::PacketType::given_up || type == wire::PacketType::goodbye) return;
  links_[from].given_up_due = true;
  outbox_.queue_control(from);
}

// The peer went on without us. Once most others have, our open and later rounds have no group.
// Before that only this peer counts as gone, so that one faulty member ends no calls.
void Endpoint::on_given_up(Instant now, Rank from) {
  Link& link = links_[from];
  if (link.gave_us_up || !given_up_.ok() || departure_.parting()) return;
  link.gave_us_up = true;
  const int others = config_.size - 1;
  if (2 * ++gave_us_up_ <= others) return lose_group_member(now, from);
  given_up_ = gave_up_by(from);
  cancel_all(now, given_up_);
  if (departure_.serving()) say_goodbye(now);
}

void Endpoint::lose_group_member(Instant now, Rank from) {
  links_[from].gone = any_gone_ = true;
  if (departure_.serving()) timers_.arm_leave(now);
  lose_in_all_rounds(now, from);
}

Status Endpoint::gave_up_by(Rank peer) const {
  return Status::error(StatusCode::kPeerLost,
                       "rank %u: rank %u %s Close this communicator; a group takes nobody back",
                       known_as(config_.names, config_.self), known_as(config_.names, peer),
                       kGaveUsUp);
}

}  // namespace leeway::protocol
