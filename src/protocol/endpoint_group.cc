// Multicast: first passes whose packets are the same for all receivers go out once for all of them.
// Whatever one of them needs alone (a copy because it does not hear, came late or fell behind, a
// repair, an END) it gets as without multicast.
#include <algorithm>
#include <limits>

#include "base/contracts.h"
#include "protocol/endpoint.h"

namespace leeway::protocol {
namespace {

// For how many time-outs of the slowest member those that are ready wait for one that is not. A
// copy of its own costs the sender as much as the whole pass does, so that hurry does not pay.
constexpr int kPatience = 8;

// With one receiver there is nothing to share.
constexpr std::uint32_t kMembersMin = 2;

}  // namespace

void Endpoint::set_up_group(Round& round, FlowKind kind) {
  GroupPass& group = round.phase(kind).group;
  if (!may_have_heard(round, kind) || round.plan.point_to_point()) return;
  const auto joins = [&](Rank peer) {
    return round.send(kind, peer).open() && links_[peer].group.hears();
  };
  std::uint32_t members = 0;
  for (Rank peer = 0; peer < config_.size; ++peer) members += joins(peer);
  if (members < kMembersMin) return;
  for (Rank peer = 0; peer < config_.size; ++peer) {
    SendFlow& flow = round.send(kind, peer);
    if (!joins(peer)) continue;
    flow.grouped = true;
    group.first_member = group.members++ == 0 ? peer : group.first_member;
  }
  group.cursor = make_cursor(round, kind, kEveryRank, round.send(kind, group.first_member).grid);
}

void Endpoint::queue_group() {
  if (!config_.multicast || group_queued_) return;
  group_queued_ = true;
  data_links_.push(kEveryRank);
}

bool Endpoint::fill_from_groups(Instant now, TrainBuffer& out) {
  for (Round* round : rounds_.collectives()) {
    for (int k = wire::kFlowKinds; k-- > 0;) {
      const auto kind = static_cast<FlowKind>(k);
      if (round->phase(kind).group.open() && fill_from_group(now, *round, kind, out)) return true;
    }
  }
  return false;
}

bool Endpoint::fill_from_group(Instant now, Round& round, FlowKind kind, TrainBuffer& out) {
  GroupPass& group = round.phase(kind).group;
  std::uint32_t credit = group_credit(round, kind);
  if (credit == 0) return wait_for_group(now, round, kind);
  group.blocked_since = Instant::infinite_future();
  std::uint32_t appended = 0;
  while (credit > 0 && out.has_room()) {
    const std::uint32_t position = group.cursor.position();
    const auto index = group.cursor.next();
    if (!index) break;
    const std::uint32_t ahead = group.cursor.peek().value_or(*index);
    append_data(now, kEveryRank, round, kind, group.first_member, {*index, position, ahead}, out);
    ++appended;
    --credit;
  }
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (round.send(kind, peer).grouped) note_sent(round, kind, peer, appended);
  }
  if (group.cursor.exhausted()) end_group(round, kind);
  return !out.empty();
}

// As many datagrams as all members have room for.
std::uint32_t Endpoint::group_credit(const Round& round, FlowKind kind) const {
  std::uint32_t credit = std::numeric_limits<std::uint32_t>::max();
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (round.phase(kind).send[peer].grouped)
      credit = std::min(credit, group_credit(round, kind, peer));
  }
  return credit;
}

std::uint32_t Endpoint::group_window_left(Rank peer) const {
  const std::uint32_t in_flight = links_[peer].group.in_flight(group_sent_);
  return links_[peer].window() - std::min(links_[peer].window(), in_flight);
}

std::uint32_t Endpoint::group_credit(const Round& round, FlowKind kind, Rank peer) const {
  const std::uint32_t credit = group_window_left(peer);
  if (gate_open(round, peer)) return credit;
  // WIRE 2.4: eager packets only
  const std::uint32_t position = round.phase(kind).group.cursor.position();
  return std::min(credit, limits::kEagerPackets - std::min(position, limits::kEagerPackets));
}

bool Endpoint::wait_for_group(Instant now, Round& round, FlowKind kind) {
  GroupPass& group = round.phase(kind).group;
  if (group.blocked_since == Instant::infinite_future()) group.blocked_since = now;
  arm_round(round, group.blocked_since + group_patience(round, kind));
  const auto& flows = round.phase(kind).send;
  const bool unreported = std::any_of(flows.begin(), flows.end(), [&](const SendFlow& flow) {
    return flow.grouped && group_window_left(static_cast<Rank>(&flow - flows.data())) == 0;
  });
  if (unreported && group_probe_at_ == Instant::infinite_future()) {
    group_probe_at_ = now + slowest_timeout(round, kind);
    timers_.arm(kGroupProbeTimer, group_probe_at_);
  }
  return false;
}

Duration Endpoint::slowest_timeout(const Round& round, FlowKind kind) const {
  Duration slowest{0};
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (round.phase(kind).send[peer].grouped)
      slowest = std::max(slowest, links_[peer].rtt.timeout());
  }
  return slowest;
}

Duration Endpoint::group_patience(const Round& round, FlowKind kind) const {
  return kPatience * slowest_timeout(round, kind);
}

// The members that hold the others up go on alone, from where the group is.
void Endpoint::wake_group(Instant now, Round& round, FlowKind kind) {
  GroupPass& group = round.phase(kind).group;
  if (!group.open() || group.blocked_since == Instant::infinite_future()) return;
  const Instant due = group.blocked_since + group_patience(round, kind);
  if (now < due) return arm_round(round, due);
  group.blocked_since = Instant::infinite_future();
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (!round.send(kind, peer).grouped || group_credit(round, kind, peer) > 0) continue;
    if (gate_open(round, peer)) links_[peer].group.give_up();
    ++counters_.group_left;
    leave_group(round, kind, peer);
  }
  queue_group();
}

void Endpoint::wake_group_probe(Instant now) {
  if (group_probe_at_ > now) return timers_.arm(kGroupProbeTimer, group_probe_at_);
  group_probe_at_ = Instant::infinite_future();
  group_probe_due_ = true;
}

// Every member sends its END itself, and answers its receiver's requests.
void Endpoint::end_group(Round& round, FlowKind kind) {
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (round.send(kind, peer).grouped) leave_group(round, kind, peer);
  }
}

void Endpoint::leave_group(Round& round, FlowKind kind, Rank peer) {
  GroupPass& group = round.phase(kind).group;
  SendFlow& flow = round.send(kind, peer);
  LEEWAY_ASSERT(flow.grouped);
  flow.grouped = false;
  flow.cursor = group.cursor;
  --group.members;
  const auto& flows = round.phase(kind).send;
  if (peer == group.first_member && group.members > 0) {
    const auto next = std::find_if(flows.begin(), flows.end(),
                                   [](const SendFlow& other) { return other.grouped; });
    group.first_member = static_cast<Rank>(next - flows.begin());
  }
  queue_data(peer);
}

void Endpoint::write_group_probe(Instant now, TrainBuffer& out) {
  group_probe_due_ = false;
  ++counters_.probes_sent;
  out.start(kEveryRank);
  const wire::Prefix header = prefix(wire::PacketType::probe, kEveryRank, now);
  out.append(wire::encode_bare(header, out.scratch(wire::kPrefixBytes)), {});
}

}  // namespace leeway::protocol
