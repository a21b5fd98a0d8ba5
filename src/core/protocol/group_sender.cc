#include "protocol/group_sender.h"

#include <algorithm>
#include <limits>

#include "base/contracts.h"

namespace leeway::protocol {
namespace {

// How long a multicast pass waits for a member that holds it up, in time-outs of the slowest
// member. Sending to this member alone would cost as much again as the whole pass, so patience
// pays.
constexpr int kPatience = 8;

// Least number of members of a shared pass: with one receiver there is nothing to share.
constexpr std::uint32_t kMembersMin = 2;

}  // namespace

bool GroupSender::form(PhaseState& phase, const PhasePlan& plan) const {
  if (!may_have_heard(plan)) return false;
  const auto joins = [&](std::size_t peer) {
    return phase.send[peer].open() && links_[peer].group.hears();
  };
  std::uint32_t members = 0;
  for (std::size_t peer = 0; peer < phase.send.size(); ++peer) members += joins(peer);
  if (members < kMembersMin) return false;
  GroupPass& group = phase.group;
  for (std::size_t peer = 0; peer < phase.send.size(); ++peer) {
    if (!joins(peer)) continue;
    phase.send[peer].grouped = true;
    group.first_member = group.members++ == 0 ? static_cast<Rank>(peer) : group.first_member;
  }
  return true;
}

void GroupSender::leave(PhaseState& phase, Rank peer) {
  GroupPass& group = phase.group;
  SendFlow& flow = phase.send[peer];
  LEEWAY_ASSERT(flow.grouped);
  flow.grouped = false;
  flow.cursor = group.cursor;
  --group.members;
  if (peer != group.first_member || group.members == 0) return;
  const auto next = std::find_if(phase.send.begin(), phase.send.end(),
                                 [](const SendFlow& other) { return other.grouped; });
  group.first_member = static_cast<Rank>(next - phase.send.begin());
}

std::uint32_t GroupSender::credit(const Round& round, FlowKind kind) const {
  std::uint32_t credit = std::numeric_limits<std::uint32_t>::max();
  const auto& flows = round.phase(kind).send;
  for (std::size_t peer = 0; peer < flows.size(); ++peer) {
    if (flows[peer].grouped)
      credit = std::min(credit, this->credit(round, kind, static_cast<Rank>(peer)));
  }
  return credit;
}

std::uint32_t GroupSender::window_left(Rank peer) const {
  const std::uint32_t window = links_[peer].path().window();
  return window - std::min(window, links_[peer].group.in_flight(sent_));
}

std::uint32_t GroupSender::credit(const Round& round, FlowKind kind, Rank peer) const {
  const std::uint32_t credit = window_left(peer);
  if (links_[peer].has_opened(round.number, /*message=*/false)) return credit;
  // WIRE 2.4: the peer has not opened the operation, so only eager packets may leave.
  const std::uint32_t position = round.phase(kind).group.cursor.position().value;
  return std::min(credit, limits::kEagerPackets - std::min(position, limits::kEagerPackets));
}

Instant GroupSender::wait(Instant now, Round& round, FlowKind kind) {
  PhaseState& phase = round.phase(kind);
  if (phase.group.blocked_since == Instant::infinite_future()) phase.group.blocked_since = now;
  const bool unreported =
      std::any_of(phase.send.begin(), phase.send.end(), [&](const SendFlow& flow) {
        return flow.grouped && window_left(static_cast<Rank>(&flow - phase.send.data())) == 0;
      });
  if (unreported && probe_at_ == Instant::infinite_future())
    probe_at_ = now + slowest_timeout(phase);
  return patience_ends(round, kind);
}

Instant GroupSender::patience_ends(const Round& round, FlowKind kind) const {
  const PhaseState& phase = round.phase(kind);
  if (!phase.group.open() || phase.group.blocked_since == Instant::infinite_future())
    return Instant::infinite_future();
  return phase.group.blocked_since + kPatience * slowest_timeout(phase);
}

Duration GroupSender::slowest_timeout(const PhaseState& phase) const {
  Duration slowest{0};
  for (std::size_t peer = 0; peer < phase.send.size(); ++peer) {
    if (phase.send[peer].grouped) slowest = std::max(slowest, links_[peer].rtt().timeout());
  }
  return slowest;
}

}  // namespace leeway::protocol
