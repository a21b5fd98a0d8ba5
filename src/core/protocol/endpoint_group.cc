// Multicast: sends packets that are the same for all receivers once for all (group_sender.h).
#include "protocol/endpoint.h"

namespace leeway::protocol {

bool Endpoint::fill_from_group(Instant now, TrainBuffer& out) {
  for (Round* round : state_.rounds.collectives()) {
    for (int k = wire::kFlowKinds; k-- > 0;) {
      const auto kind = static_cast<FlowKind>(k);
      if (round->phase(kind).group.open() && fill_from_pass(now, *round, kind, out)) return true;
    }
  }
  return false;
}

bool Endpoint::fill_from_pass(Instant now, Round& round, FlowKind kind, TrainBuffer& out) {
  PhaseState& phase = round.phase(kind);
  GroupPass& group = phase.group;
  std::uint32_t credit = state_.group.credit(round, kind);
  if (credit == 0) {
    state_.timers.arm_round(round, state_.group.wait(now, round, kind));
    state_.timers.arm_group_probe(state_.group.probe_at());
    return false;
  }
  group.blocked_since = Instant::infinite_future();
  std::uint32_t appended = 0;
  for (; credit > 0 && out.has_room(); --credit, ++appended) {
    const PacketPosition position = group.cursor.position();
    const auto index = group.cursor.next();
    if (!index) break;
    const PacketIndex ahead = group.cursor.peek().value_or(*index);
    append_data(now, kEveryRank, round, kind, group.first_member, {*index, position, ahead}, out);
  }
  const bool over = group.cursor.exhausted();
  for (Rank peer = 0; peer < state_.config.size; ++peer) {
    if (!phase.send[peer].grouped) continue;
    note_sent(round, kind, peer, appended);
    // Every member sends its END itself, and answers its receiver's requests.
    if (over) state_.leave_group(round, kind, peer);
  }
  return !out.empty();
}

// Members that hold the others up leave the group, and go on alone from its position.
void Endpoint::wake_group(Instant now, Round& round, FlowKind kind) {
  const Instant due = state_.group.patience_ends(round, kind);
  if (now < due) return state_.timers.arm_round(round, due);
  round.phase(kind).group.blocked_since = Instant::infinite_future();
  for (Rank peer = 0; peer < state_.config.size; ++peer) {
    if (!round.send(kind, peer).grouped || state_.group.credit(round, kind, peer) > 0) continue;
    if (state_.gate_open(round, peer)) state_.links[peer].group.give_up();
    ++state_.counters.group_left;
    state_.leave_group(round, kind, peer);
  }
  state_.queue_group();
}

}  // namespace leeway::protocol
