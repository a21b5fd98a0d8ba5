#include "protocol/leaving.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::protocol {

bool Leaving::wake(Instant now) {
  if (!state_.departure.serving()) return false;
  Departure::Group group{.idle = state_.rounds.idle(),
                         .silence = state_.departure.served(now),
                         .slowest = state_.slowest_timeout()};
  group.content = true;
  for (const Rank peer : state_.others()) {
    const Link& link = state_.links[peer];
    if (link.heard) group.silence = std::min(group.silence, link.silence(now));
    group.first &= !link.gone;
    group.content &= link.content || link.gone;
  }
  if (group.first && state_.departure.asks_peers(now, group)) state_.probe_present();
  const auto again_at = state_.departure.ask_again(now, group);
  if (again_at) state_.timers.arm_leave(*again_at);
  return !again_at;
}

void Leaving::say_goodbye(Instant now, bool given_up) {
  LEEWAY_ASSERT(state_.departure.parting());
  for (const Rank peer : state_.others()) {
    Link& link = state_.links[peer];
    link.report_at = link.answer_at = link.probe_at = Instant::infinite_future();
    if (link.dead) tell_given_up(peer);
    if (link.gone) continue;
    using enum Departure::Awaited;
    const auto awaited = given_up ? no : link.heard ? yes : perhaps;
    state_.timers.arm_link(peer, state_.departure.owe(now, peer, link.rtt(), awaited));
    state_.outbox.queue_control(peer);
  }
  state_.group.stop_probing();
}

// WIRE 6.7: a process that this rank gave up as dead may only have been stopped. When that process
// goes on, it learns from this datagram why nobody answers.
void Leaving::tell_given_up(Rank peer) {
  state_.links[peer].given_up_due = true;
  state_.outbox.queue_control(peer);
}

void Leaving::wake_farewell(Instant now, Rank peer) {
  const Link& link = state_.links[peer];
  if (!state_.departure.parting() || link.gone || state_.departure.parted(peer)) return;
  const Departure::Wake farewell = state_.departure.on_wake(now, peer, link.rtt());
  if (farewell.say) state_.outbox.queue_control(peer);
  state_.timers.arm_link(peer, farewell.again_at);
}

bool Leaving::left() const {
  if (!state_.departure.parting() || !state_.outbox.control_empty()) return false;
  return std::ranges::all_of(state_.present(),
                             [&](Rank peer) { return state_.departure.parted(peer); });
}

}  // namespace leeway::protocol
