#include "protocol/settling.h"

#include <algorithm>

#include "base/contracts.h"
#include "protocol/awaited.h"
#include "protocol/mismatch.h"

namespace leeway::protocol {
namespace {

// How long after its deadline a stand-in ends if the call whose place it holds has not ended it.
constexpr Duration kStandInPatience = std::chrono::milliseconds(5);

}  // namespace

void Settling::settle_send(Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (!flow.open()) return;
  // The caller waits for a report that says whether the flow was used, so the flow stays open. An
  // END asks for that report (WIRE 4.3).
  if (round.awaits_word(kind, flow)) {
    round.phase(kind).set_pass_over(flow, true);
    flow.end_due = true;
    return state_.outbox.queue_control(peer);
  }
  if (flow.grouped) state_.leave_group(round, kind, peer);
  round.phase(kind).set_pass_over(flow, true);
  flow.settled = true;
  flow.end_due = false;
  LEEWAY_ASSERT(round.phase(kind).sends_open > round.phase(kind).passes_open);
  --round.phase(kind).sends_open;
}

void Settling::finish_receive(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  LEEWAY_ASSERT(flow.open() && round.phase(kind).receives_open > 0);
  flow.finished = true;
  flow.request_due = false;
  --round.phase(kind).receives_open;
  Link& link = state_.links[peer];
  if (kind == FlowKind::reduce && flow.arrived_count == 0)
    link.missed.note(round.number, state_.rounds.opened_below());
  ++link.unreported_settles;
  link.point_unreported |= kind == FlowKind::point;
  if (kind == FlowKind::point) state_.rounds.messages(peer)->touch(*round.stream);
  // An owner spreads each part of its shard only after it has reduced that part. So the complete
  // shard confirms our contribution without an acknowledgement.
  if (kind == FlowKind::spread && flow.complete() && round.plan->phase(FlowKind::reduce).active) {
    settle_send(round, FlowKind::reduce, peer);
  }
  // The peer's caller waits for a report that the flow is settled, except in three cases: no packet
  // can be asked for again, the peer kept a copy of the payload, or our result confirms it.
  const PhasePlan& plan = round.plan->phase(kind);
  const bool result_tells = kind == FlowKind::reduce && round.plan->phase(FlowKind::spread).active;
  const bool awaited = plan.repairable && !plan.payload_retained && !result_tells;
  if (awaited || link.unreported_settles >= 4) {
    state_.queue_report(peer);
  } else {
    link.report_at = std::min(link.report_at, now + 2 * Duration(limits::kTickNs));
    state_.timers.arm_link(peer, link.report_at);
  }
}

void Settling::settle_phase(Instant now, Round& round, FlowKind kind) {
  LEEWAY_ASSERT(!round.phase(kind).settled && round.phase(kind).receives_open == 0);
  round.phase(kind).settled = true;
  state_.rounds.refresh_settled_below();
  round.client->on_settled(kind, now);
}

void Settling::advance(Instant now, Round& round) {
  // A failing message ends at fail_at, and never here as a success: the data of its flow belongs to
  // another operation.
  if (round.ended || !round.failure.ok() || round.plan->stands_in) return;
  if (round.disputed_by != kNoRank && !round.done) return;  // the ranks may mean different calls
  for (const FlowKind kind : round.plan->active_kinds()) {
    const PhaseState& phase = round.phase(kind);
    if (!phase.settled && phase.receives_open == 0) settle_phase(now, round, kind);
  }
  if (!round.done && (round.caller_may_go() || may_run_ahead(round))) {
    round.done = true;
    if (round.plan->point_send) state_.rounds.messages(round.plan->point_peer)->run_ahead(round);
    round.client->on_done(Status(), now);
  }
  if (round.done && round.all_confirmed()) end(round);
}

// Returns true for a send that is done at once, because its message was copied. At most
// limits::kSendsAheadMax such sends may be open towards a peer.
bool Settling::may_run_ahead(const Round& round) const {
  return round.plan->point_send && round.plan->phase(FlowKind::point).payload_retained &&
         state_.rounds.messages(round.plan->point_peer)->ahead() < limits::kSendsAheadMax;
}

void Settling::finish(Instant now, Round& round, const Status& status, const Blame& blame) {
  if (!status.ok()) {
    ++state_.counters.rounds_failed;
    round.blame = blame;
    if (round.plan->point_to_point() && status.code() == StatusCode::kMismatch)
      tell_mismatch(round);
    if (!round.done || status.code() == StatusCode::kMismatch)
      tell_failure(round, blame.told != StatusCode::kOk ? blame.told : status.code(), blame);
  }
  if (!round.done) {
    round.done = true;
    round.client->on_done(status, now);
  }
  end(round);
}

void Settling::doom(Instant now, Round& round, const Status& status, const Blame& blame) {
  if (round.ended || !round.failure.ok()) return;
  if (!round.plan->point_to_point()) return finish(now, round, status, blame);
  round.failure = status;
  round.fail_at = now + Duration(limits::kTickNs);
  state_.timers.arm_round(round, round.fail_at);
  state_.queue_report(round.plan->point_peer);
}

// Tells all peers that a collective has failed. Both sides of a message learn of its failure by
// other means, and a good-bye tells of cancelled operations.
void Settling::tell_failure(const Round& round, StatusCode code, const Blame& blame) {
  if (round.plan->point_to_point() || code == StatusCode::kCancelled) return;
  if (makes_another_call(code)) state_.rounds.hold_settled_below(round.number);
  failures_.add(
      {.entry = {.round = round.number,
                 .tag = round.plan->tag,
                 .failure = code,
                 .about = blame.rank,
                 .first = blame.first,
                 .other = blame.tag},
       .opened = state_.rounds.collectives_opened(),
       .pair_sends = {round.plan->pair_sends.begin(), round.plan->pair_sends.end()},
       .pair_receives = {round.plan->pair_receives.begin(), round.plan->pair_receives.end()}});
  for (const Rank peer : state_.present()) state_.queue_report(peer);
}

bool Settling::owes(const Round& round, Rank peer) const {
  if (!round.exchanges_with(peer)) return round.plan->needs_every_rank && !round.all_settled();
  for (const FlowKind kind : round.plan->active_kinds()) {
    const ReceiveFlow& in = round.receive(kind, peer);
    if (round.send(kind, peer).open() || (in.packets > 0 && !in.complete())) return true;
  }
  return false;
}

void Settling::end(Round& round) {
  for (Rank peer = round.first_peer(); peer < round.end_peer(state_.config.size); ++peer) {
    if (peer != state_.config.self && owes(round, peer)) state_.links[peer].watch.keep();
  }
  state_.rounds.end(round);
  state_.timers.disarm_round(round);
}

void Settling::end_as_told(Instant now, Round& round) {
  const Told& told = round.told;
  const bool says_about =
      told.code == StatusCode::kDeadlineExceeded || told.code == StatusCode::kPeerLost;
  finish(now, round, failed_there(state_.config, round, told.by, told.code, told.about),
         {.rank = told.about != kNoRank || says_about ? told.about : told.by,
          .first = told.code == StatusCode::kDeadlineExceeded ? told.by : kNoRank});
}

void Settling::end_stand_in(Instant now, Round& round, const Status& status, const Blame& blame) {
  LEEWAY_ASSERT(round.plan->stands_in);
  if (round.ended) return;
  const Rank absentee = absent(now, state_, round);
  const bool late = status.code() == StatusCode::kDeadlineExceeded && absentee != kNoRank;
  Blame told = blame;
  told.tag = round.plan->tag;  // the client knows which rank differs, but not what that rank means
  finish(now, round, late ? overdue(now, state_, round) : status, late ? Blame{absentee} : told);
}

void Settling::cancel(Instant now, const Status& status, Cancelled which) {
  const auto cancel = [&](Round& round) {
    if (round.ended || (which == Cancelled::awaited && round.done)) return;
    finish(now, round, round.failure.ok() ? status : round.failure);
  };
  for (Round* round : state_.rounds.collectives()) cancel(*round);
  for (Rank peer = 0; peer < state_.config.size; ++peer) {
    const PeerMessages* messages = state_.rounds.messages(peer);
    if (messages == nullptr) continue;
    messages->for_each_open(cancel);
  }
}

void Settling::on_peer_left_round(Instant now, Round& round, Rank from) {
  // The peer will send no report that says whether our contribution was used, so none is awaited.
  if (round.plan->confirm_use) round.send(FlowKind::reduce, from).informed = true;
  for (const FlowKind kind : round.plan->active_kinds()) {
    settle_send(round, kind, from);
    ReceiveFlow& flow = round.receive(kind, from);
    if (flow.open() && !flow.abandoned) {
      flow.abandoned = true;
      flow.tries = 0;
      state_.arm_quiet(now, round, kind, from);
    }
  }
  advance(now, round);
}

void Settling::end_abandoned(Instant now, Round& round, Rank peer) {
  if (round.ended) return;
  for (const FlowKind kind : round.plan->active_kinds()) {
    const ReceiveFlow& flow = round.receive(kind, peer);
    if (flow.open() && flow.abandoned) finish_receive(now, round, kind, peer);
  }
  advance(now, round);
}

void Settling::on_deadline(Instant now, Round& round) {
  // The rank that we wait for. It is named to peers that still lack packets of the round.
  const Rank awaited = longest_silent(now, state_, round).peer;
  if (round.plan->point_send && round.done) return;  // run ahead: the caller relies on its arrival
  if (round.plan->point_send) give_message_up(round);
  if (round.done) {
    if (awaited != kNoRank) tell_failure(round, StatusCode::kDeadlineExceeded, {awaited});
    return end(round);
  }
  // A stand-in holds the place of a call that goes another way. If no rank is absent, only that
  // call knows which rank it waits for, so it gets kStandInPatience to end the stand-in itself. If
  // the call does not end it, the call still waits for earlier calls and has not begun.
  const Rank absentee = absent(now, state_, round);
  if (round.plan->stands_in && absentee == kNoRank) {
    if (round.plan->tag.delivery != Delivery::Kind::exact) return;
    const Instant patience_ends = round.plan->deadline + kStandInPatience;
    if (now < patience_ends) return state_.timers.arm_round(round, patience_ends);
    return finish(now, round,
                  overdue_behind(now, state_, round.plan->name, round.plan->deadline_said));
  }
  if (round.plan->tag.delivery == Delivery::Kind::exact) {
    return finish(now, round, overdue(now, state_, round),
                  {absentee != kNoRank ? absentee : awaited});
  }
  if (awaited != kNoRank && !round.plan->stands_in)
    tell_failure(round, StatusCode::kDeadlineExceeded, {awaited});
  for (const FlowKind kind : round.plan->active_kinds()) {
    if (round.phase(kind).settled) continue;
    cut_phase(now, round, kind);
    settle_phase(now, round, kind);
  }
  // A lossy round whose operation a peer disputes (Round::disputed_by) ends without error, too. A
  // peer that sends packets of another operation, and never says which one it means, is faulty.
  finish(now, round, Status());
}

void Settling::cut_phase(Instant now, Round& round, FlowKind kind) {
  LEEWAY_ASSERT(!round.phase(kind).settled);
  ++state_.counters.deadline_cuts;
  round.phase(kind).deadline_cut = true;
  for (Rank peer = round.first_peer(); peer < round.end_peer(state_.config.size); ++peer) {
    if (round.receive(kind, peer).open()) finish_receive(now, round, kind, peer);
  }
}

void Settling::expire_messages(Instant now, Rank peer) {
  PeerMessages* const messages = state_.rounds.messages(peer);
  if (messages == nullptr) return;
  if (now >= messages->deadline_at) {
    messages->deadline_at = Instant::infinite_future();
    messages->for_each_open([&](Round& message) {
      if (now >= message.plan->deadline) {
        on_deadline(now, message);
      } else {
        messages->deadline_at = std::min(messages->deadline_at, message.plan->deadline);
      }
    });
  }
  state_.timers.arm_link(peer, messages->deadline_at);
}

void Settling::tell_mismatch(const Round& round) {
  if (round.plan->point_send) return give_message_up(round);
  const Rank peer = round.plan->point_peer;
  if (state_.links[peer].gone) return;
  state_.rounds.messages(peer)->refuse(round);
  state_.queue_report(peer);
}

// Tells the receiver that this send ended, by its deadline or because it does not match. Otherwise
// the receiver would wait for the message.
void Settling::give_message_up(const Round& round) {
  const Rank peer = round.plan->point_peer;
  if (!round.send(FlowKind::point, peer).open() || state_.links[peer].gone) return;
  PeerMessages& messages = *state_.rounds.messages(peer);
  if (round.failure.code() == StatusCode::kMismatch) {
    messages.give_up_unmatched(round);
  } else {
    messages.give_up(round.plan->message_tag, round.number);
  }
  state_.queue_report(peer);
}

}  // namespace leeway::protocol
