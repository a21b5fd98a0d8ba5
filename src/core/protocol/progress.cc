#include "protocol/progress.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::protocol {

bool Progress::may_have_opened(Rank peer, std::uint32_t opened_below) const {
  const std::uint32_t known = state_.links[peer].peer_opened_below;
  const std::uint32_t ours = state_.rounds.opened_below();
  return !after(opened_below, (after(known, ours) ? known : ours) + limits::kRoundsAheadMax);
}

void Progress::on_collectives(Instant now, Rank peer, std::uint32_t opened_below,
                              std::uint32_t settled_below) {
  Link& link = state_.links[peer];
  if (after(opened_below, link.peer_opened_below)) {
    const std::uint32_t before = link.peer_opened_below;
    link.peer_opened_below = opened_below;
    for (Round* round : state_.rounds.collectives()) {
      if (round->ended || after(before, round->number) || !state_.gate_open(*round, peer)) continue;
      if (round->gates_closed > 0 && --round->gates_closed == 0) round->gate_open_at = now;
      repeat_end_soon(now, *round, peer);
    }
    state_.outbox.queue_data(peer);
  }
  // This rank believes settled_below only up to the collectives that it has opened itself: it has
  // sent nothing of later ones (WIRE 2.6).
  if (after(settled_below, state_.rounds.opened_below()))
    settled_below = state_.rounds.opened_below();
  if (!after(settled_below, link.peer_settled_below)) return;
  link.peer_settled_below = settled_below;
  LEEWAY_ASSERT(!after(link.peer_settled_below, state_.rounds.opened_below()));
  for (Round* round : state_.rounds.collectives()) {
    if (round->ended || !after(settled_below, round->number)) continue;
    for (FlowKind kind : {FlowKind::reduce, FlowKind::spread}) {
      if (round->plan->phase(kind).active) settling_.settle_send(*round, kind, peer);
    }
    settling_.advance(now, *round);
  }
}

void Progress::on_receives(Instant now, Rank peer) {
  for (Round* round : state_.rounds.with(peer)) {
    if (!round->plan->point_to_point() || round->gates_closed == 0 ||
        !state_.gate_open(*round, peer))
      continue;
    round->gates_closed = 0;
    round->gate_open_at = now;
    repeat_end_soon(now, *round, peer);
  }
}

// Called when the peer has opened the operation. Before, the peer could use no END, so the back-off
// of ENDs starts anew.
void Progress::repeat_end_soon(Instant now, Round& round, Rank peer) {
  for (const FlowKind kind : round.plan->active_kinds()) {
    SendFlow& flow = round.send(kind, peer);
    flow.end_tries = 0;
    if (!flow.open() || !flow.pass_over) continue;
    flow.end_at = std::min(flow.end_at, now + state_.links[peer].rtt().timeout());
    state_.timers.arm_link(peer, flow.end_at);
  }
}

}  // namespace leeway::protocol
