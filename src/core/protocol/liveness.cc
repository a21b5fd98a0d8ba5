#include "protocol/liveness.h"

#include "base/contracts.h"
#include "protocol/awaited.h"
#include "protocol/mismatch.h"

namespace leeway::protocol {

void Liveness::watch(Instant now, Rank peer) {
  Link& link = state_.links[peer];
  if (state_.config.peer_timeout == Duration(0) || link.watch.on() || link.gone) return;
  state_.timers.arm_link(peer, link.watch.start(now, link.rtt(), state_.config.peer_timeout));
}

void Liveness::watch_peers(Instant now) {
  for (const Rank peer : state_.others()) watch(now, peer);
}

void Liveness::watch_all(Instant now, bool on) {
  watched_from_outside_ = on;
  if (on) watch_peers(now);
}

bool Liveness::expects(Rank peer) const {
  if (watched_from_outside_ || tags_.any()) return true;
  for (const Round* round : state_.rounds.with(peer)) {
    if (round->ended) continue;
    if (round->plan->needs_every_rank && !round->done && !round->exchanges_with(peer)) return true;
    for (const FlowKind kind : round->plan->active_kinds()) {
      if (round->receive(kind, peer).open() || round->send(kind, peer).open()) return true;
    }
  }
  return false;
}

bool Liveness::wake(Instant now, Rank peer) {
  Link& link = state_.links[peer];
  // After its good-bye a rank sends no probes (WIRE 6.4), so it judges no peer by silence.
  if (!link.watch.on() || link.gone || state_.departure.parting()) return false;
  const Watch::Look look = link.watch.look(now, link.path().heard_at(), expects(peer), link.rtt(),
                                           state_.config.peer_timeout);
  switch (look.verdict) {
    case Watch::Look::Verdict::lives:
      break;
    case Watch::Look::Verdict::probe:
      state_.queue_probe(peer);
      break;
    case Watch::Look::Verdict::dead:
      return true;
  }
  state_.timers.arm_link(peer, look.again_at);
  return false;
}

bool Liveness::all_gone() const {
  return state_.present().empty();
}

void Liveness::bury(Instant now, Rank peer) {
  Link& link = state_.links[peer];
  link.path().give_up();
  if (link.gone) return;
  state_.lose(now, peer);
  link.dead = true;
  ++state_.counters.peers_given_up;
  LEEWAY_ASSERT(first_death_.ok() == (first_dead_ == kNoRank));
  if (first_death_.ok()) {
    first_dead_ = peer;
    first_death_ = Status::error(StatusCode::kPeerLost,
                                 "rank %u: rank %u is dead: it gave no sign of life for %.1f s",
                                 state_.config.own_name(), state_.config.known_as(peer),
                                 to_seconds(state_.config.peer_timeout));
  }
  lose_in_all_rounds(now, peer);
}

void Liveness::lose_in_all_rounds(Instant now, Rank peer) {
  state_.rounds.for_each_with(peer, [&](Round& round) { lose_peer(now, round, peer); });
}

Status Liveness::loss_of(const Round& round, Rank peer) const {
  return state_.links[peer].gave_us_up ? gave_up_by(peer) : died(state_, round, peer);
}

// Fails an exact operation that is not done, because it can no longer be complete. Any other
// operation goes on without the peer.
void Liveness::lose_peer(Instant now, Round& round, Rank peer) {
  if (round.ended) return;
  if (!round.done && round.plan->tag.delivery == Delivery::Kind::exact)
    return settling_.finish(now, round, loss_of(round, peer), {peer});
  settling_.on_peer_left_round(now, round, peer);
  settling_.end_abandoned(now, round, peer);
}

void Liveness::start_without(Instant now, Round& round) {
  const bool exact = round.plan->tag.delivery == Delivery::Kind::exact;
  for (Rank peer = round.first_peer(); peer < round.end_peer(state_.config.size); ++peer) {
    if (round.ended) return;
    const Link& link = state_.links[peer];
    if (peer == state_.config.self || !link.gone) continue;
    if ((link.dead || link.gave_us_up) && exact)
      return settling_.finish(now, round, loss_of(round, peer), {peer});
    // Packets that the peer sent before it left may still come, so an exact flow ends only after a
    // quiet time.
    if (exact) state_.timers.arm_link(peer, now + link.quiet_time(/*gives_up=*/false));
    if (!exact) settling_.end_abandoned(now, round, peer);
  }
}

void Liveness::answer_dead(Rank from, wire::PacketType type) {
  if (type == wire::PacketType::given_up || type == wire::PacketType::goodbye) return;
  state_.links[from].given_up_due = true;
  state_.outbox.queue_control(from);
}

// Once more than half of the other ranks have given this rank up, none of its calls can succeed.
// Until then only the peer `from` is treated as gone, so that one faulty member cannot end calls of
// the whole group.
bool Liveness::on_given_up(Instant now, Rank from) {
  Link& link = state_.links[from];
  if (link.gave_us_up || !given_up_.ok() || state_.departure.parting()) return false;
  link.gave_us_up = true;
  const int others = state_.config.size - 1;
  LEEWAY_ASSERT(gave_us_up_ < others);
  if (2 * ++gave_us_up_ > others) {
    given_up_ = gave_up_by(from);
    return true;
  }
  state_.lose(now, from);
  lose_in_all_rounds(now, from);
  return false;
}

Status Liveness::gave_up_by(Rank peer) const {
  return Status::error(StatusCode::kPeerLost,
                       "rank %u: rank %u %s Close this communicator; a group takes nobody back",
                       state_.config.own_name(), state_.config.known_as(peer), kGaveUsUp);
}

void Liveness::on_probe(Instant now, Rank from) {
  Link& link = state_.links[from];
  if (now >= link.next_answer_at) return answer_probe(now, from);
  link.answer_at = link.next_answer_at;
  state_.timers.arm_link(from, link.answer_at);
}

void Liveness::answer_probe(Instant now, Rank peer) {
  Link& link = state_.links[peer];
  link.answer_at = Instant::infinite_future();
  link.next_answer_at = now + link.rtt().smoothed() / limits::kProbeAnswersPerRoundTrip;
  state_.queue_report(peer);
}

void Liveness::on_goodbye(Instant now, Rank from) {
  state_.lose(now, from);
  state_.queue_report(from);  // WIRE 6.3: the peer says good-bye until a report answers
  state_.rounds.for_each_with(
      from, [&](Round& round) { settling_.on_peer_left_round(now, round, from); });
}

}  // namespace leeway::protocol
