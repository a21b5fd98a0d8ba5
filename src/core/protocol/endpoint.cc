#include "protocol/endpoint.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::protocol {
namespace {

template <typename T>
void prefetch(const T& object) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&object);
  for (std::size_t at = 0; at < sizeof(T); at += 64) __builtin_prefetch(begin + at, 1);
}

}  // namespace

Round* Endpoint::open_round(Instant now, const RoundPlan& plan, RoundClient& client) {
  const std::uint32_t next = state_.rounds.opened_below();
  Round* const round = opening_.open(now, plan, client);
  if (round != nullptr && !plan.point_to_point() && round->number != next)
    receiver_.skip_collectives_below(round->number);
  return round;
}

void Endpoint::start(Instant now, Round& round) {
  opening_.announce(now, round);
  receiver_.replay_early(now, round);
  if (!round.plan->point_to_point() && !round.ended) reports_.recall(now, round);
  if (state_.any_gone) liveness_.start_without(now, round);
  state_.rounds.refresh_settled_below();
  settling_.advance(now, round);
  reap(now);
}

void Endpoint::fail(Instant now, Round& round, const Status& status, const Blame& blame) {
  if (!round.ended) settling_.finish(now, round, status, blame);
  // If the round fails before start(), the early buffer may hold datagrams of it. replay_early()
  // removes them.
  receiver_.replay_early(now, round);
  reap(now);
}

void Endpoint::end_stand_in(Instant now, Round& round, const Status& status, const Blame& blame) {
  settling_.end_stand_in(now, round, status, blame);
  reap(now);
}

void Endpoint::cancel(Instant now, const Status& status, Cancelled which) {
  settling_.cancel(now, status, which);
  reap(now);
}

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
    // WIRE 6.9: the peer's process lives, but its rank has not spoken, so the rank still counts as
    // unheard.
    state_.counters.refused_report += !state_.links[from].path().on_alive(now, prefix.sequence);
    return;
  }
  state_.links[from].path().on_life(now);
  state_.links[from].gap.pause_until(opening_.busy_since());
  if (prefix.destination == kEveryRank) {
    state_.links[from].on_group_arrival(now, prefix.sequence);
  } else {
    state_.links[from].on_arrival(now, prefix.sequence, datagram.size());
  }
  state_.links[from].heard = true;
  if (state_.links[from].dead) return liveness_.answer_dead(from, prefix.type);
  switch (prefix.type) {
    case wire::PacketType::data: {
      wire::DataHeader header;
      ByteSpan payload;
      refusal = wire::decode_data(datagram, header, payload);
      if (refusal == wire::Refusal::none) receiver_.on_data(now, from, header, datagram);
      break;
    }
    case wire::PacketType::report: {
      wire::Report report;
      refusal = wire::decode_report(datagram, report);
      if (refusal == wire::Refusal::none) reports_.on_report(now, from, report);
      break;
    }
    case wire::PacketType::end: {
      wire::End end;
      refusal = wire::decode_end(datagram, end);
      if (refusal == wire::Refusal::none) receiver_.on_end(now, from, end);
      break;
    }
    case wire::PacketType::repair: {
      wire::Repair repair;
      ByteSpan words;
      refusal = wire::decode_repair(datagram, repair, words);
      if (refusal == wire::Refusal::none) sender_.on_repair(now, from, repair, words);
      break;
    }
    case wire::PacketType::probe:
      liveness_.on_probe(now, from);
      break;
    case wire::PacketType::goodbye:
      liveness_.on_goodbye(now, from);
      break;
    case wire::PacketType::given_up:
      if (!liveness_.on_given_up(now, from)) break;
      cancel(now, liveness_.given_up());
      if (state_.departure.serving()) say_goodbye(now);
      break;
    case wire::PacketType::alive:  // heard above
    case wire::PacketType::size:   // refused above
    case wire::PacketType::piece:
      break;
  }
  if (refusal != wire::Refusal::none) ++state_.counters.refused[static_cast<int>(refusal)];
  // WIRE 6.5: a peer that has left needs no credit, so its datagrams cause no report. If they did,
  // and this rank had left too, the reports of both would answer each other for ever.
  if (!state_.links[from].gone && (prefix.asks || state_.links[from].report_wanted()))
    state_.queue_report(from);
  reap(now);
}

// Handles each timer that is due. The loop runs at most once for each timer that exists. So a timer
// that a handler arms for `now` may have to wait for the next call.
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
        if (leaving_.wake(now)) say_goodbye(now);
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
  if (link.answer_at <= now) liveness_.answer_probe(now, peer);
  if (link.probe_at <= now) {
    state_.queue_probe(peer);
    link.probe_at = now + link.rtt().timeout(++link.probe_tries);
  }
  state_.timers.arm_link(peer, std::min({link.report_at, link.answer_at, link.probe_at}));
  if (liveness_.wake(now, peer)) bury(now, peer);
  settling_.expire_messages(now, peer);
  for (Round* round : state_.rounds.with(peer)) {
    if (!round->ended) wake_flows(now, *round, peer);
  }
  leaving_.wake_farewell(now, peer);
}

void Endpoint::wake_flows(Instant now, Round& round, Rank peer) {
  if (round.plan->point_to_point()) {
    if (now >= round.fail_at) return settling_.finish(now, round, round.failure);
    state_.timers.arm_link(peer, round.fail_at);
  }
  for (const FlowKind kind : round.plan->active_kinds()) {
    receiver_.wake(now, round, kind, peer);
    if (round.ended) return;  // the round failed
    sender_.wake(now, round, kind, peer);
  }
  settling_.advance(now, round);
}

// Handles a collective's own timer: its deadlines, inquiries, and members that hold up its
// multicast.
void Endpoint::wake_round(Instant now, Round& round) {
  if (now >= round.plan->deadline) return settling_.on_deadline(now, round);
  if (now >= round.inquire_at) inquiry_.on_time(now, round);
  state_.timers.arm_round(round, std::min(round.plan->deadline, round.inquire_at));
  for (const FlowKind kind : round.plan->active_kinds()) {
    if (!round.phase(kind).settled) {
      const Instant deadline = round.plan->phase(kind).deadline;
      if (now >= deadline) {
        settling_.cut_phase(now, round, kind);
      } else {
        state_.timers.arm_round(round, deadline);
      }
    }
    sender_.wake_group(now, round, kind);
  }
  settling_.advance(now, round);
}

void Endpoint::on_credit(Rank peer) {
  state_.outbox.queue_data(peer);
  state_.queue_group();
}

void Endpoint::watch_tag(Instant now, std::uint32_t tag) {
  liveness_.watch_peers(now);
  tags_.watch(tag);
  receiver_.note_early(tag);
}

void Endpoint::bury(Instant now, Rank peer) {
  liveness_.bury(now, peer);
  reap(now);
}

void Endpoint::probe_all() {
  for (const Rank peer : state_.others()) probe(peer);
  state_.group.probe();
}

int Endpoint::peers_proven() const {
  return static_cast<int>(std::count_if(state_.links.begin(), state_.links.end(),
                                        [](const Link& link) { return link.proven(); }));
}

void Endpoint::leave(Instant now) {
  if (!state_.departure.here()) return;
  state_.departure.serve(now, state_.slowest_timeout());
  if (!liveness_.given_up().ok() || leaving_.wake(now)) say_goodbye(now);
}

void Endpoint::say_goodbye(Instant now) {
  state_.departure.part(now, state_.config.size);
  cancel(now,
         Status::error(StatusCode::kCancelled, "rank %u: communicator closed", state_.config.self));
  leaving_.say_goodbye(now, !liveness_.given_up().ok());
}

void Endpoint::shorten_datagrams(std::size_t bytes) {
  LEEWAY_ASSERT(bytes >= limits::kDatagramBytesMin && bytes <= state_.config.datagram_bytes);
  LEEWAY_ASSERT(state_.rounds.idle() && state_.counters.rounds_opened == 0);
  state_.config.datagram_bytes = bytes;
  for (const Rank peer : state_.others()) {
    state_.links[peer].path().widen(
        static_cast<std::uint32_t>(state_.config.window_bytes[peer] / bytes),
        static_cast<std::uint32_t>(state_.config.peers_window_bytes / bytes));
  }
}

void Endpoint::keep_intact(std::vector<std::uint8_t> by_rank) {
  LEEWAY_ASSERT(state_.rounds.idle());
  state_.config.intact = std::move(by_rank);
}

}  // namespace leeway::protocol
