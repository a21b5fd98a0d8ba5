// Timers: deadlines, quiet, asking again, delayed reports. All periods come from the measured round
// trips and arrival gaps of the link in question.
#include <algorithm>

#include "base/contracts.h"
#include "protocol/awaited.h"
#include "protocol/endpoint.h"
#include "protocol/mismatch.h"

namespace leeway::protocol {
namespace {

// WIRE 5.8: repair requests in a row without an answer, after which they back off. Where half of
// the packets are lost, this happens to one flow of one packet in 256.
constexpr std::uint32_t kFruitlessMost = 8;

// Time-outs that pass before a stalled operation asks all ranks. This leaves time for repairs, and
// for a rank that is a little late.
constexpr int kInquiryTimeouts = 16;
// Inquiries that fit into a short deadline: the first comes after this part of it at the latest.
constexpr int kInquiriesByDeadline = 8;

}  // namespace

std::optional<Instant> Endpoint::next_wake() const {
  if (timers_.next() == Instant::infinite_future()) return std::nullopt;
  return timers_.next();
}

// Looks only at timers that are due. A timer that is armed for this very moment meanwhile may wait
// for the next call.
void Endpoint::on_wake(Instant now) {
  for (std::size_t i = 0; i < timers_.count(); ++i) {
    const auto due = timers_.take_due(now);
    if (!due) return;
    switch (due->what) {
      case Timers::What::round:
        if (Round* const round = rounds_.in_slot(due->index)) wake_round(now, *round);
        break;
      case Timers::What::group_probe:
        if (group_.probe_at() <= now) group_.on_probe_time();
        timers_.arm_group_probe(group_.probe_at());
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
  Link& link = links_[peer];
  if (link.report_at <= now) {
    link.report_at = Instant::infinite_future();
    queue_report(peer);
  }
  if (link.answer_at <= now) answer_probe(now, peer);
  if (link.probe_at <= now) {
    link.probe_due = true;
    outbox_.queue_control(peer);
    link.probe_at = now + link.rtt().timeout(++link.probe_tries);
  }
  timers_.arm_link(peer, std::min({link.report_at, link.answer_at, link.probe_at}));
  wake_watch(now, peer);
  expire_messages(now, peer);
  for (Round* round : rounds_.with(peer)) {
    if (!round->ended) wake_flows(now, *round, peer);
  }
  if (!departure_.parting() || link.gone || departure_.parted(peer)) return;
  const Departure::Wake farewell = departure_.on_wake(now, peer, link.rtt());
  if (farewell.say) outbox_.queue_control(peer);
  timers_.arm_link(peer, farewell.again_at);
}

void Endpoint::wake_flows(Instant now, Round& round, Rank peer) {
  if (round.plan->point_to_point()) {
    if (now >= round.fail_at) return finish(now, round, round.failure);
    timers_.arm_link(peer, round.fail_at);
  }
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    const auto kind = static_cast<FlowKind>(k);
    if (!round.plan->phases[k].active) continue;
    wake_receive(now, round, kind, peer);
    if (round.ended) return;  // the round failed
    wake_send(now, round, kind, peer);
  }
  advance(now, round);
}

// Every message has its own deadline, even one that is not among the oldest of its stream yet.
void Endpoint::expire_messages(Instant now, Rank peer) {
  PeerMessages* const messages = rounds_.messages(peer);
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
  timers_.arm_link(peer, messages->deadline_at);
}

// Handles a collective's own timer: its deadlines, inquiries, and members that hold up its
// multicast.
void Endpoint::wake_round(Instant now, Round& round) {
  if (now >= round.plan->deadline) return on_deadline(now, round);
  if (now >= round.inquire_at) inquire(now, round);
  timers_.arm_round(round, std::min(round.plan->deadline, round.inquire_at));
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    const auto kind = static_cast<FlowKind>(k);
    if (!round.plan->phases[k].active) continue;
    if (!round.phases[k].settled) {
      if (now >= round.plan->phases[k].deadline) {
        cut_phase(now, round, kind);
      } else {
        timers_.arm_round(round, round.plan->phases[k].deadline);
      }
    }
    wake_group(now, round, kind);
  }
  advance(now, round);
}

void Endpoint::arm_inquiry(Instant now, Round& round) {
  // Answers are to be there by the deadline.
  const Duration soon = std::max<Duration>(Duration(limits::kTickNs),
                                           round.plan->deadline_length / kInquiriesByDeadline);
  const Duration first = std::min(kInquiryTimeouts * slowest_timeout(), soon);
  const std::uint32_t doublings = std::min<std::uint32_t>(round.inquiries, 6);
  round.inquire_at =
      now + std::min(first * (1 << doublings), std::max(first, Duration(limits::kBackOffNs)));
  timers_.arm_round(round, round.inquire_at);
}

// Probes all peers that have not left. Returns false if there are none.
bool Endpoint::probe_present() {
  bool any = false;
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer == config_.self || links_[peer].gone) continue;
    probe(peer);
    any = true;
  }
  return any;
}

// The operation stalls, perhaps for a rank that it exchanges no packets with (WIRE 2.9). Reports
// tell which rank has not opened it, and which one means another operation.
void Endpoint::inquire(Instant now, Round& round) {
  round.inquire_at = Instant::infinite_future();
  if (round.done) return;
  if (!probe_present()) return;  // all have left: the deadline ends it
  ++round.inquiries;
  arm_inquiry(now, round);
}

// The deadline of a lossy phase has passed. Settles it with the packets that are there.
void Endpoint::cut_phase(Instant now, Round& round, FlowKind kind) {
  ++counters_.deadline_cuts;
  round.phase(kind).deadline_cut = true;
  for (Rank peer = round.first_peer(); peer < round.end_peer(config_.size); ++peer) {
    if (round.receive(kind, peer).open()) finish_receive(now, round, kind, peer);
  }
}

void Endpoint::on_deadline(Instant now, Round& round) {
  // Tells peers that still lack packets of the round why no more come.
  const Rank awaited = longest_silent(now, config_.self, round, links_).peer;
  if (round.plan->point_send) give_message_up(round);
  if (round.done) {
    if (awaited != kNoRank) tell_failure(round, StatusCode::kDeadlineExceeded, {awaited});
    return end(round);
  }
  // The client that the round stands in for knows better which rank it waits for, unless a rank has
  // not begun.
  if (round.plan->stands_in && absent(now, config_.self, round, links_) == kNoRank) return;
  if (round.plan->tag.delivery == Delivery::Kind::exact) {
    const Rank absentee = absent(now, config_.self, round, links_);
    return finish(now, round, overdue(now, config_.self, round, links_, config_.names),
                  {absentee != kNoRank ? absentee : awaited});
  }
  if (awaited != kNoRank && !round.plan->stands_in)
    tell_failure(round, StatusCode::kDeadlineExceeded, {awaited});
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    const auto kind = static_cast<FlowKind>(k);
    if (round.phases[k].settled) continue;
    cut_phase(now, round, kind);
    settle_phase(now, round, kind);
  }
  // (A peer that sends another operation's packets, and never says which it means, is faulty.)
  finish(now, round, Status());
}

void Endpoint::wake_receive(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  if (!flow.open()) return;
  const Link& link = links_[peer];
  const PhasePlan& plan = round.plan->phase(kind);
  // The answer to a request may have come although its end was lost. Then nothing is left to ask
  // for.
  const bool answered =
      flow.requested_pass > 0 && !flow.needs_more(plan.delivery, plan.loss_max, plan.fetch_empty);
  if (flow.abandoned || flow.ended_pass >= flow.awaited_pass() || answered) {
    Instant quiet_at = flow.last_arrival + link.quiet_time(plan.gives_up());
    if (flow.fruitless > kFruitlessMost)
      quiet_at =
          std::max(quiet_at, flow.ask_at + link.rtt().timeout(flow.fruitless - kFruitlessMost));
    if (now < quiet_at) return timers_.arm_link(peer, quiet_at);
    if (!flow.needs_more(plan.delivery, plan.loss_max, plan.fetch_empty))
      return finish_receive(now, round, kind, peer);
    if (flow.abandoned) return on_abandoned(now, round, kind, peer);
    return ask_again(now, round, kind, peer);
  }
  // Waits for the first pass or for the answer to a request. Silence may mean a lost datagram,
  // theirs or ours.
  Instant since = std::max(flow.ask_at, flow.last_arrival);
  // One report announces all posted receives.
  if (kind == FlowKind::point && flow.ended_pass < 0)
    since = std::max(since, rounds_.messages(peer)->reported_at);
  const Instant due = since + link.rtt().timeout(flow.tries);
  if (now < due) return timers_.arm_link(peer, due);
  ask_again(now, round, kind, peer);
}

void Endpoint::on_abandoned(Instant now, Round& round, FlowKind kind, Rank peer) {
  if (round.plan->phase(kind).delivery != Delivery::Kind::exact ||
      round.plan->tag.delivery != Delivery::Kind::exact) {
    return finish_receive(now, round, kind, peer);
  }
  if (round.told.by != kNoRank) return end_as_told(now, round);
  if (may_mean_another(round, kind, peer)) return ask_what_they_mean(now, round, kind, peer);
  finish(now, round, left_early(config_.self, round, kind, peer, config_.names), {peer});
}

// A peer that has ended the operation well, and owed us all packets of it, means another one. What
// that is it says no more; a rank that waits for us in it does.
bool Endpoint::may_mean_another(const Round& round, FlowKind kind, Rank peer) const {
  const ReceiveFlow& flow = round.receive(kind, peer);
  if (round.plan->point_to_point() || links_[peer].gone || flow.arrived_count > 0) return false;
  if (flow.tries < kFruitlessMost) return true;
  for (Rank other = 0; other < config_.size; ++other) {
    if (other == config_.self || links_[other].gone) continue;
    if (!links_[other].has_opened(round.number, /*message=*/false)) return true;
  }
  return false;
}

void Endpoint::ask_what_they_mean(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  const RoundTrip& rtt = links_[peer].rtt();
  if (now >= flow.ask_at + rtt.timeout(flow.tries)) {
    probe_present();
    flow.ask_at = now;
    ++flow.tries;
  }
  timers_.arm_link(peer, flow.ask_at + rtt.timeout(flow.tries));
}

// An exact operation cannot go on without the peer at which it failed.
void Endpoint::end_as_told(Instant now, Round& round) {
  const Told& told = round.told;
  const bool says_about =
      told.code == StatusCode::kDeadlineExceeded || told.code == StatusCode::kPeerLost;
  finish(now, round,
         failed_there(round, config_.self, told.by, told.code, told.about, config_.names),
         {.rank = told.about != kNoRank || says_about ? told.about : told.by,
          .first = told.code == StatusCode::kDeadlineExceeded ? told.by : kNoRank});
}

// Before the first pass has ended, says again that the operation is open here. After it, asks for
// missing packets.
void Endpoint::ask_again(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  if (flow.ended_pass < 0) {
    // A peer that has opened the operation would send at once if it knew that we have. Packets of a
    // spread may not exist there yet.
    const bool at_once = kind == FlowKind::reduce || !round.plan->phase(FlowKind::reduce).active;
    if (flow.tries > 0 && at_once && gate_open(round, peer))
      links_[peer].report_copies = links_[peer].copies(flow.tries);
    queue_report(peer);
  } else {
    flow.ask_for_all();
    ++flow.fruitless;
    outbox_.queue_control(peer);
  }
  flow.ask_at = now;
  timers_.arm_link(peer, now + links_[peer].rtt().timeout(++flow.tries));
}

// WIRE 5.6: handles a peer that did not report that it opened the operation, while its copy of
// multicast packets waits for that. The peer may have heard the multicast, closed the operation and
// said so in a report that was lost. No datagram would mention the operation again, so this asks.
void Endpoint::ask_gated(Instant now, Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (flow.end_at == Instant::infinite_future()) return;
  if (now < flow.end_at) return timers_.arm_link(peer, flow.end_at);
  flow.end_at = Instant::infinite_future();
  if (gate_open(round, peer)) return;
  links_[peer].probe_due = true;
  outbox_.queue_control(peer);
  flow.end_at = now + links_[peer].rtt().timeout(flow.end_tries++);
  timers_.arm_link(peer, flow.end_at);
}

void Endpoint::wake_send(Instant now, Round& round, FlowKind kind, Rank peer) {
  SendFlow& flow = round.send(kind, peer);
  if (!flow.open()) return;
  if (!flow.pass_over) return ask_gated(now, round, kind, peer);
  if (now < flow.end_at) return timers_.arm_link(peer, flow.end_at);
  flow.end_at = Instant::infinite_future();  // set again when the END is written
  flow.end_due = true;
  outbox_.queue_control(peer);
}

// Parts if the group can do without this rank; else looks again later.
void Endpoint::wake_leave(Instant now) {
  if (!departure_.serving()) return;
  Departure::Group group{
      .idle = idle(), .silence = departure_.served(now), .slowest = slowest_timeout()};
  group.content = true;
  for (Rank peer = 0; peer < config_.size; ++peer) {
    const Link& link = links_[peer];
    if (link.heard) group.silence = std::min(group.silence, link.silence(now));
    group.first &= !link.gone;
    group.content &= link.content || link.gone || peer == config_.self;
  }
  if (group.first && departure_.asks_peers(now, group)) {
    for (Rank peer = 0; peer < config_.size; ++peer) {
      if (peer == config_.self) continue;
      links_[peer].probe_due = true;
      outbox_.queue_control(peer);
    }
  }
  const auto again_at = departure_.ask_again(now, group);
  again_at ? timers_.arm_leave(*again_at) : say_goodbye(now);
}

}  // namespace leeway::protocol
