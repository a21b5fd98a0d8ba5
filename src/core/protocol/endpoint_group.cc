// Multicast: sends packets that are the same for all receivers once for all (group_sender.h).
#include "protocol/endpoint.h"

namespace leeway::protocol {

void Endpoint::queue_group() {
  if (group_.on()) outbox_.queue_data(kEveryRank);
}

bool Endpoint::fill_from_group(Instant now, TrainBuffer& out) {
  for (Round* round : rounds_.collectives()) {
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
  std::uint32_t credit = group_.credit(round, kind);
  if (credit == 0) {
    timers_.arm_round(round, group_.wait(now, round, kind));
    timers_.arm_group_probe(group_.probe_at());
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
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (!phase.send[peer].grouped) continue;
    note_sent(round, kind, peer, appended);
    // Every member sends its END itself, and answers its receiver's requests.
    if (over) leave_group(round, kind, peer);
  }
  return !out.empty();
}

// Members that hold the others up leave the group, and go on alone from its position.
void Endpoint::wake_group(Instant now, Round& round, FlowKind kind) {
  const Instant due = group_.patience_ends(round, kind);
  if (now < due) return timers_.arm_round(round, due);
  round.phase(kind).group.blocked_since = Instant::infinite_future();
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (!round.send(kind, peer).grouped || group_.credit(round, kind, peer) > 0) continue;
    if (gate_open(round, peer)) links_[peer].group.give_up();
    ++counters_.group_left;
    leave_group(round, kind, peer);
  }
  queue_group();
}

void Endpoint::leave_group(Round& round, FlowKind kind, Rank peer) {
  GroupSender::leave(round.phase(kind), peer);
  outbox_.queue_data(peer);
}

}  // namespace leeway::protocol
