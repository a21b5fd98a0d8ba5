#include "protocol/inquiry.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::protocol {
namespace {

// Time-outs that pass before a stalled operation asks all ranks. This leaves time for repairs, and
// for a rank that is a little late.
constexpr int kInquiryTimeouts = 16;
// The first inquiry comes after an eighth of the time to the deadline at the latest, so that
// answers are there by the deadline.
constexpr int kInquiriesByDeadline = 8;

}  // namespace

void Inquiry::arm(Instant now, Round& round) {
  LEEWAY_ASSERT(!round.plan->point_to_point());
  const Duration soon = std::max<Duration>(Duration(limits::kTickNs),
                                           round.plan->deadline_length / kInquiriesByDeadline);
  const Duration first = std::min(kInquiryTimeouts * state_.slowest_timeout(), soon);
  const std::uint32_t doublings = std::min<std::uint32_t>(round.inquiries, 6);
  round.inquire_at =
      now + std::min(first * (1 << doublings), std::max(first, Duration(limits::kBackOffNs)));
  state_.timers.arm_round(round, round.inquire_at);
}

void Inquiry::on_time(Instant now, Round& round) {
  round.inquire_at = Instant::infinite_future();
  if (round.done) return;
  if (!state_.probe_present()) return;  // all have left: the deadline ends the collective
  ++round.inquiries;
  arm(now, round);
}

bool Inquiry::may_mean_another(const Round& round, FlowKind kind, Rank peer) const {
  const ReceiveFlow& flow = round.receive(kind, peer);
  if (round.plan->point_to_point() || state_.links[peer].gone || flow.arrived_count > 0)
    return false;
  if (flow.tries < ReceiveFlow::kFruitlessMost) return true;
  for (const Rank other : state_.present()) {
    if (!state_.links[other].has_opened(round.number, /*message=*/false)) return true;
  }
  return false;
}

void Inquiry::ask_what_they_mean(Instant now, Round& round, FlowKind kind, Rank peer) {
  ReceiveFlow& flow = round.receive(kind, peer);
  const RoundTrip& rtt = state_.links[peer].rtt();
  if (now >= flow.ask_at + rtt.timeout(flow.tries)) {
    state_.probe_present();
    flow.ask_at = now;
    ++flow.tries;
  }
  state_.timers.arm_link(peer, flow.ask_at + rtt.timeout(flow.tries));
}

}  // namespace leeway::protocol
