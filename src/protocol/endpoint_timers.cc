// What time does: deadlines, quiet, asking again, delayed reports. All periods come from measured
// round trips and arrival gaps of the link in question.
#include <algorithm>

#include "base/contracts.h"
#include "protocol/endpoint.h"

namespace leeway::protocol {

std::optional<Instant> Endpoint::next_wake() const {
  if (timers_.next() == Instant::infinite_future()) return std::nullopt;
  return timers_.next();
}

void Endpoint::arm_round(const Round& round, Instant at) {
  if (round.plan.point_to_point()) {
    arm_link(round.plan.point_peer, at);
  } else {
    timers_.arm(round.slot, at);
  }
}

// Looks at what is due and at nothing else. What one timer arms for this very moment may wait for
// the next call.
void Endpoint::on_wake(Instant now) {
  for (std::size_t i = 0; i < timers_.size(); ++i) {
    const auto timer = timers_.take_due(now);
    if (!timer) return;
    if (*timer >= kFirstLinkTimer) {
      wake_link(now, static_cast<Rank>(*timer - kFirstLinkTimer));
    } else if (*timer == kGroupProbeTimer) {
      wake_group_probe(now);
    } else if (*timer == kLeaveTimer) {
      wake_leave(now);
    } else if (Round* const round = rounds_.in_slot(*timer)) {
      wake_round(now, *round);
    }
    reap(now);
  }
}

void Endpoint::wake_link(Instant now, Rank peer) {
  Link& link = links_[peer];
  if (link.report_at <= now) {
    link.report_at = Instant::infinite_future();
    queue_report(peer);
  }
  if (link.probe_at <= now) {
    link.probe_due = true;
    queue_control(peer);
    link.probe_at = now + link.rtt.timeout(++link.probe_tries);
  }
  arm_link(peer, std::min(link.report_at, link.probe_at));
  expire_messages(now, peer);
  for (Round* round : rounds_.with(peer)) {
    if (!round->ended) wake_flows(now, *round, peer);
  }
  wake_farewell(now, peer);
}

void Endpoint::wake_flows(Instant now, Round& round, Rank peer) {
  if (round.plan.point_to_point()) {
    if (now >= round.fail_at) return finish(now, round, round.failure);
    arm_link(peer, round.fail_at);
  }
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    const auto kind = static_cast<FlowKind>(k);
    if (!round.plan.phases[k].active) continue;
    wake_receive(now, round, kind, peer);
    if (round.ended) return;  // failed
    wake_send(now, round, kind, peer);
  }
  advance(now, round);
}

// Every message has its own deadline, also one that does not talk yet.
void Endpoint::expire_messages(Instant now, Rank peer) {
  PeerMessages* const messages = rounds_.messages(peer);
  if (messages == nullptr) return;
  if (now >= messages->deadline_at) {
    messages->deadline_at = Instant::infinite_future();
    for (const MessageList* list : {&messages->sends, &messages->receives}) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        Round& message = (*list)[i];
        if (now >= message.plan.deadline) {
          on_deadline(now, message);
        } else {
          messages->deadline_at = std::min(messages->deadline_at, message.plan.deadline);
        }
      }
    }
  }
  arm_link(peer, messages->deadline_at);
}

// A collective's own timer: its deadlines, and what holds up its multicast.
void Endpoint::wake_round(Instant now, Round& round) {
  if (now >= round.fail_at) return finish(now, round, round.failure);
  if (now >= round.plan.deadline) return on_deadline(now, round);
  arm_round(round, std::min(round.fail_at, round.plan.deadline));
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    const auto kind = static_cast<FlowKind>(k);
    if (!round.plan.phases[k].active) continue;
    if (!round.phases[k].settled) {
      if (now >= round.plan.phases[k].deadline) {
        cut_phase(now, round, kind);
      } else {
        arm_round(round, round.plan.phases[k].deadline);
      }
    }
    wake_group(now, round, kind);
  }
  advance(now, round);
}

// The deadline of a lossy phase: settle with what is there.
void Endpoint::cut_phase(Instant now, Round& round, FlowKind kind) {
  ++counters_.deadline_cuts;
  round.phase(kind).deadline_cut = true;
  for (Rank peer = round.first_peer(); peer < round.end_peer(config_.size); ++peer) {
    if (round.receive(kind, peer).open()) finish_receive(now, round, kind, peer);
  }
}

void Endpoint::on_deadline(Instant now, Round& round) {
  if (round.done) return rounds_.end(round);
  if (round.plan.tag.delivery == static_cast<std::uint8_t>(Delivery::Kind::exact)) {
    return finish(now, round, overdue(now, round));
  }
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    const auto kind = static_cast<FlowKind>(k);
    if (round.phases[k].settled) continue;
    cut_phase(now, round, kind);
    settle_phase(now, round, kind);
  }
  finish(now, round, Status());
}

// The peer that has been silent longest among those this operation still waits for; kNoRank: for
// none.
Endpoint::Awaited Endpoint::longest_silent(Instant now, const Round& round) const {
  Awaited longest;
  const auto silence = [&](Rank peer) {
    return heard_[peer] ? links_[peer].silence(now) : Duration::max();
  };
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    if (!round.plan.phases[k].active) continue;
    const auto kind = static_cast<FlowKind>(k);
    for (Rank peer = round.first_peer(); peer < round.end_peer(config_.size); ++peer) {
      const bool data = round.receive(kind, peer).open();
      if (!data && !round.send(kind, peer).open()) continue;
      if (longest.peer != kNoRank && silence(peer) <= silence(longest.peer)) continue;
      longest = {peer, kind, data};
    }
  }
  return longest;
}

Status Endpoint::overdue(Instant now, const Round& round) const {
  const Awaited awaited = longest_silent(now, round);
  const double deadline_ms = static_cast<double>(round.plan.deadline_length.count()) / 1e6;
  if (awaited.peer == kNoRank) {
    return Status::error(StatusCode::kInternal,
                         "rank %u: %s #%u: deadline passed although nothing was missing",
                         config_.self, round.plan.name, round.number);
  }
  constexpr const char* kHalves[] = {"reduce half", "spread half", "message"};
  const char* half = kHalves[static_cast<int>(awaited.kind)];
  if (awaited.data) {
    const ReceiveFlow& flow = round.receive(awaited.kind, awaited.peer);
    return Status::error(
        StatusCode::kDeadlineExceeded,
        "rank %u: %s #%u: deadline of %.0f ms passed: %u of %u packets of the %s came from rank %u",
        config_.self, round.plan.name, round.number, deadline_ms, flow.arrived_count, flow.packets,
        half, awaited.peer);
  }
  return Status::error(
      StatusCode::kDeadlineExceeded,
      "rank %u: %s #%u: deadline of %.0f ms passed: rank %u did not confirm the %s", config_.self,
      round.plan.name, round.number, deadline_ms, awaited.peer, half);
}

bool Endpoint::needs_more(const PhasePlan& plan, const ReceiveFlow& flow) const {
  switch (plan.delivery) {
    case Delivery::Kind::exact:
      return flow.missing() > 0;
    case Delivery::Kind::bounded:
      return flow.missing() > plan.loss_max * flow.packets || flow.required_missing();
    case Delivery::Kind::best_effort:
      return flow.required_missing() || (plan.fetch_empty && flow.first_pass_lost());
  }
  return false;
}

// How long nothing must have come after the sender said that it was done: time for overtaken
// packets to arrive. Where what is missing will be asked for, impatience costs a copy of what was
// overtaken, patience a part of every repair; where it is given up, the loss of it.
Duration Endpoint::quiet_time(const Link& link, const PhasePlan& plan) const {
  const Duration gaps = 2 * link.gap.mean();
  const bool gives_up = plan.delivery == Delivery::Kind::best_effort;
  const Duration wanted = gives_up ? std::max(gaps, link.rtt.smoothed() / 4) : gaps;
  return std::min(wanted, link.rtt.timeout());
}

void Endpoint::wake_receive(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  if (!flow.open()) return;
  Link& link = links_[peer];
  // What was asked for may have come although the end of the answer got lost: there is nothing left
  // to ask for then.
  const bool answered = flow.requested_pass > 0 && !needs_more(round.plan.phase(kind), flow);
  if (flow.abandoned || flow.ended_pass >= flow.requested_pass || answered) {
    const Instant quiet_at = flow.last_arrival + quiet_time(link, round.plan.phase(kind));
    if (now < quiet_at) return arm_link(peer, quiet_at);
    if (!needs_more(round.plan.phase(kind), flow)) return finish_receive(now, round, kind, peer);
    if (flow.abandoned) return on_abandoned(now, round, kind, peer);
    return ask_again(now, round, kind, peer);
  }
  // Waiting for the first pass or for the answer to a request. Silence may be a lost datagram,
  // theirs or ours.
  Instant since = std::max(flow.ask_at, flow.last_arrival);
  // One report announces all posted receives.
  if (kind == FlowKind::point && flow.ended_pass < 0)
    since = std::max(since, rounds_.messages(peer)->reported_at);
  const Instant due = since + link.rtt.timeout(flow.tries);
  if (now < due) return arm_link(peer, due);
  ask_again(now, round, kind, peer);
}

void Endpoint::on_abandoned(Instant now, Round& round, FlowKind kind, Rank peer) {
  if (round.plan.phase(kind).delivery != Delivery::Kind::exact ||
      round.plan.tag.delivery != static_cast<std::uint8_t>(Delivery::Kind::exact)) {
    return finish_receive(now, round, kind, peer);
  }
  // It may have left because of a third rank, whose silence met its deadline a moment before ours:
  // then that rank is to be named, by our own deadline.
  if (longest_silent(now, round).peer != peer)
    return arm_link(peer, now + links_[peer].rtt.timeout());
  const ReceiveFlow& flow = round.receive(kind, peer);
  finish(
      now, round,
      Status::error(
          StatusCode::kPeerLost,
          "rank %u: %s #%u: rank %u left the operation after %u of %u packets (deadline %.0f ms)",
          config_.self, round.plan.name, round.number, peer, flow.arrived_count, flow.packets,
          static_cast<double>(round.plan.deadline_length.count()) / 1e6));
}

// Before the first pass has ended: says again that the operation is open here. After it: asks for
// what is missing.
void Endpoint::ask_again(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  if (flow.ended_pass < 0) {
    queue_report(peer);
  } else {
    ++flow.requested_pass;
    flow.request_due = true;
    flow.request_word = 0;
    queue_control(peer);
  }
  flow.ask_at = now;
  arm_link(peer, now + links_[peer].rtt.timeout(++flow.tries));
}

// WIRE 5.6: the peer has not said that it opened the operation, and waits for its copy of what was
// multicast for others meanwhile. It may have heard all of that, closed the operation and said so,
// which was lost: nobody would speak of it again.
void Endpoint::ask_gated(Instant now, Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (flow.end_at == Instant::infinite_future()) return;
  if (now < flow.end_at) return arm_link(peer, flow.end_at);
  flow.end_at = Instant::infinite_future();
  if (gate_open(round, peer)) return;
  links_[peer].probe_due = true;
  queue_control(peer);
  flow.end_at = now + links_[peer].rtt.timeout(flow.end_tries++);
  arm_link(peer, flow.end_at);
}

void Endpoint::wake_send(Instant now, Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (!flow.open()) return;
  if (!flow.pass_over) return ask_gated(now, round, kind, peer);
  if (now < flow.end_at) return arm_link(peer, flow.end_at);
  flow.end_at = Instant::infinite_future();  // set again when the END is written
  flow.end_due = true;
  queue_control(peer);
}

}  // namespace leeway::protocol
