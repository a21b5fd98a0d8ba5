// What time does: deadlines, quiet, asking again, delayed reports. After
// src/protocol/endpoint_timers.cc, with an event per link instead of a scan of all links.
#include <algorithm>

#include "base/contracts.h"
#include "endpoint/abstract_endpoints.h"

namespace leeway::sim {

// One event of a link counts, the earliest; others are void. When it comes, the link's timers are
// looked at and the next is armed.
void AbstractEndpoints::arm(Instant now, std::uint32_t rank, std::uint32_t peer, Instant at) {
  AbstractLink& to = link(rank, peer);
  const AbstractTick tick = AbstractTick::at(at);
  if (to.wake_at.set() && !tick.before(to.wake_at)) return;
  to.wake_at = tick;
  queue_.push(tick.instant(now), rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::link) | std::uint64_t{peer} << 8);
}

void AbstractEndpoints::on_event(const Event& event) {
  const Instant now{event.time_ns};
  const std::uint32_t rank = event.target;
  AbstractRank& node = ranks_[rank];
  if (node.paused || node.dead) return;  // resume() looks at everything
  switch (static_cast<Step>(event.argument & 0xFF)) {
    case Step::link: {
      const auto peer = static_cast<std::uint32_t>(event.argument >> 8);
      if (link(rank, peer).wake_at != AbstractTick::now(now)) return;
      wake_link(now, rank, peer);
      break;
    }
    case Step::writable:
      break;
    case Step::deadline:
      if (static_cast<std::uint32_t>(event.argument >> 32) != node.opened) return;
      on_deadline(now, rank, static_cast<int>(event.argument >> 8 & 1));
      break;
  }
  follow_up(now, rank);
}

void AbstractEndpoints::wake_link(Instant now, std::uint32_t rank, std::uint32_t peer) {
  AbstractLink& to = link(rank, peer);
  const AbstractTick tick = AbstractTick::now(now);
  to.wake_at.clear();
  if (to.report_at.due(tick)) {
    to.report_at.clear();
    queue_report(rank, peer);
  }
  if (to.probe_at.due(tick)) {
    to.probe_due = true;
    queue_control(rank, peer);
    if (to.probe_tries < UINT8_MAX) ++to.probe_tries;
    to.probe_at = AbstractTick::at(now + Duration(to.timeout_ns(to.probe_tries)));
  }
  for (const AbstractTick timer : {to.report_at, to.probe_at}) {
    if (timer.set()) arm(now, rank, peer, timer.instant(now));
  }
  for (const int half : {kReduceHalf, kSpreadHalf}) {
    if (!to.receive[half].finished) wake_receive(now, rank, peer, half);
    if (!to.send[half].settled) wake_send(now, rank, peer, to.send[half]);
  }
  if (to.lingering == 0) return;
  for (AbstractLingering& entry : lingering_to(rank, peer)) {
    if (now.ns >= entry.deadline_ns) confirm_lingering(rank, entry);
    if (!entry.flow.settled) wake_send(now, rank, peer, entry.flow);
  }
}

bool AbstractEndpoints::needs_more(const AbstractHalf& half, std::uint32_t missing,
                                   std::uint32_t packets) {
  switch (half.delivery) {
    case Delivery::Kind::exact:
      return missing > 0;
    case Delivery::Kind::bounded:
      return missing > half.loss_max * packets;
    case Delivery::Kind::best_effort:
      return false;
  }
  return false;
}

// How long nothing must have come after the sender said that it was done.
std::int64_t AbstractEndpoints::quiet_ns(const AbstractLink& link, const AbstractHalf& half) {
  const std::int64_t gaps = 2 * std::int64_t{link.gap_ns};
  const bool gives_up = half.delivery == Delivery::Kind::best_effort;
  const std::int64_t wanted = gives_up ? std::max(gaps, link.round_trip_ns() / 4) : gaps;
  return std::min(wanted, link.timeout_ns(0));
}

void AbstractEndpoints::wake_receive(Instant now, std::uint32_t rank, std::uint32_t peer,
                                     int half) {
  AbstractLink& from = link(rank, peer);
  AbstractReceiveFlow& flow = from.receive[half];
  const AbstractHalf& plan = ranks_[rank].plan->halves[half];
  const std::uint32_t packets = ranks_[rank].plan->flow_packets(half, peer, rank);
  const bool more = needs_more(plan, packets - flow.arrived, packets);
  const bool answered = flow.requested_pass > 0 && !more;
  if (flow.abandoned || flow.ended_at_least(flow.requested_pass) || answered) {
    const Instant quiet_at{flow.last_ns + quiet_ns(from, plan)};
    if (now < quiet_at) return arm(now, rank, peer, quiet_at);
    if (!more) return finish_receive(now, rank, peer, half);
    if (!flow.abandoned) return ask_again(now, rank, peer, half);
    // The sender has left an exact call: it will fail at its deadline unless it is lossy.
    if (plan.delivery != Delivery::Kind::exact ||
        ranks_[rank].plan->delivery != Delivery::Kind::exact)
      finish_receive(now, rank, peer, half);
    return;
  }
  const Instant due{flow.last_ns + from.timeout_ns(flow.tries)};
  if (now < due) return arm(now, rank, peer, due);
  ask_again(now, rank, peer, half);
}

// Before the first pass has ended: says again that the call is open here. After it: asks for what
// is missing.
void AbstractEndpoints::ask_again(Instant now, std::uint32_t rank, std::uint32_t peer, int half) {
  AbstractLink& from = link(rank, peer);
  AbstractReceiveFlow& flow = from.receive[half];
  if (!flow.ended) {
    queue_report(rank, peer);
  } else {
    ++flow.requested_pass;
    flow.request_due = true;
    queue_control(rank, peer);
  }
  flow.last_ns = now.ns;
  if (flow.tries < UINT8_MAX) ++flow.tries;
  arm(now, rank, peer, now + Duration(from.timeout_ns(flow.tries)));
}

void AbstractEndpoints::wake_send(Instant now, std::uint32_t rank, std::uint32_t peer,
                                  AbstractSendFlow& flow) {
  if (!flow.pass_over || !flow.end_at.set()) return;
  if (!flow.end_at.due(AbstractTick::now(now)))
    return arm(now, rank, peer, flow.end_at.instant(now));
  flow.end_at.clear();  // set again when the END is written
  flow.end_due = true;
  queue_control(rank, peer);
}

void AbstractEndpoints::on_deadline(Instant now, std::uint32_t rank, int half) {
  AbstractRank& node = ranks_[rank];
  const AbstractPlan& plan = *node.plan;
  if (node.closed) return;
  if (half == kReduceHalf && now.ns < node.submitted_ns + plan.deadline_ns) {
    if (!node.phases[half].settled) cut_phase(now, rank, half);
    return;
  }
  if (!node.done && plan.delivery == Delivery::Kind::exact) return finish(rank, overdue(rank));
  for (const int open : {kReduceHalf, kSpreadHalf}) {
    if (!node.phases[open].settled) cut_phase(now, rank, open);
  }
  finish(rank, Status());
}

// The deadline of a lossy half: settle with what is there.
void AbstractEndpoints::cut_phase(Instant now, std::uint32_t rank, int half) {
  ranks_[rank].deadline_cut = true;
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (!link(rank, peer).receive[half].finished) finish_receive(now, rank, peer, half);
  }
}

Status AbstractEndpoints::overdue(std::uint32_t rank) const {
  const AbstractRank& node = ranks_[rank];
  return Status::error(StatusCode::kDeadlineExceeded,
                       "rank %u: %s #%u: deadline of %.0f ms passed: %llu of %llu packets arrived",
                       rank, to_string(node.plan->kind), node.opened - 1,
                       static_cast<double>(node.plan->deadline_ns) / 1e6,
                       static_cast<unsigned long long>(node.arrived),
                       static_cast<unsigned long long>(node.expected));
}

}  // namespace leeway::sim
