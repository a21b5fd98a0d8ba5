#include "protocol/awaited.h"

#include <array>
#include <cstdio>
#include <utility>

#include "base/duration_text.h"

namespace leeway::protocol {
namespace {

// Returns the deadline for error texts, such as "deadline 200 ms".
std::array<char, 48> deadline_of(const Round& round) {
  std::array<char, 48> text{};
  const Duration length = round.plan->deadline_said;
  if (round.plan->deadline == Instant::infinite_future()) {
    std::snprintf(text.data(), text.size(), "no deadline");
  } else {
    std::snprintf(text.data(), text.size(), "deadline %s", in_milliseconds(length).data());
  }
  return text;
}

// A stalled collective asks all ranks how far they are (class Inquiry). Once it has asked this
// often, ranks have had time to answer the first question.
constexpr std::uint32_t kInquiriesAnswered = 2;

Duration silence_of(const Link& link, Instant now) {
  return link.heard ? link.silence(now) : Duration::max();
}

}  // namespace

Rank absent(Instant now, const EndpointState& state, const Round& round) {
  Rank longest = kNoRank;
  if (round.inquiries < kInquiriesAnswered) return longest;
  for (const Rank peer : state.present()) {
    if (round.exchanges_with(peer)) continue;
    const Link& link = state.links[peer];
    const bool answers = link.watch.unanswered(now) == Duration(0);
    if (answers && link.has_opened(round.number, /*message=*/false)) continue;
    if (longest == kNoRank || silence_of(link, now) > silence_of(state.links[longest], now))
      longest = peer;
  }
  return longest;
}

Awaited longest_silent(Instant now, const EndpointState& state, const Round& round) {
  Awaited longest{absent(now, state, round)};
  // A rank that has not opened the collective holds up all others, so it is blamed before ranks
  // that are only silent.
  const auto blame = [&](Rank peer) {
    const Link& link = state.links[peer];
    const bool late = !round.plan->point_to_point() && !link.has_opened(round.number, false);
    return std::pair(late, silence_of(link, now));
  };
  for (const FlowKind kind : round.plan->active_kinds()) {
    const Rank end = round.end_peer(state.config.size);
    for (Rank peer = round.first_peer(); peer < end; ++peer) {
      const bool data = round.receive(kind, peer).open();
      if (!data && !round.send(kind, peer).open()) continue;
      if (longest.peer != kNoRank && blame(peer) <= blame(longest.peer)) continue;
      longest = {peer, kind, data};
    }
  }
  return longest;
}

Status overdue(Instant now, const EndpointState& state, const Round& round) {
  const Rank us = state.config.own_name();
  if (const Rank peer = absent(now, state, round); peer != kNoRank) {
    const bool opened = state.links[peer].has_opened(round.number, /*message=*/false);
    return Status::error(
        StatusCode::kDeadlineExceeded, "rank %u: %s #%u: Timed out (%s): rank %u %s", us,
        round.plan->name, round.number_said(), deadline_of(round).data(),
        state.config.known_as(peer), opened ? "does not answer" : "has not begun it");
  }
  const Awaited awaited = longest_silent(now, state, round);
  if (awaited.peer == kNoRank) {
    return Status::error(StatusCode::kInternal,
                         "rank %u: %s #%u: deadline passed although nothing was missing", us,
                         round.plan->name, round.number_said());
  }
  const Rank them = state.config.known_as(awaited.peer);
  constexpr const char* kHalves[] = {"reduce half", "spread half", "message"};
  const char* half = kHalves[static_cast<int>(awaited.kind)];
  if (awaited.data) {
    const ReceiveFlow& flow = round.receive(awaited.kind, awaited.peer);
    return Status::error(StatusCode::kDeadlineExceeded,
                         "rank %u: %s #%u: Timed out (%s): %u of "
                         "%u packets of the %s came from rank %u",
                         us, round.plan->name, round.number_said(), deadline_of(round).data(),
                         flow.arrived_count, flow.packets, half, them);
  }
  return Status::error(StatusCode::kDeadlineExceeded,
                       "rank %u: %s #%u: Timed out (%s): rank %u "
                       "did not confirm the %s",
                       us, round.plan->name, round.number_said(), deadline_of(round).data(), them,
                       half);
}

Status overdue_behind(Instant now, const EndpointState& state, const char* name,
                      Duration deadline) {
  std::array<char, 96> why{"what earlier calls send has not left this host"};
  if (const auto open = state.rounds.collectives(); !open.empty()) {
    const Round& oldest = *open.front();
    Rank late = longest_silent(now, state, oldest).peer;
    for (const Rank peer : state.others()) {
      if (late == kNoRank && !state.links[peer].has_opened(oldest.number, false)) late = peer;
    }
    const int written =
        std::snprintf(why.data(), why.size(), "%zu calls before it are not over; the oldest is #%u",
                      open.size(), oldest.number_said());
    const auto end = static_cast<std::size_t>(written);
    if (late != kNoRank)
      std::snprintf(why.data() + end, why.size() - end, ", for which rank %u is late",
                    state.config.known_as(late));
  }
  return Status::error(StatusCode::kDeadlineExceeded, "rank %u: %s: Timed out (deadline %s): %s",
                       state.config.own_name(), name, in_milliseconds(deadline).data(), why.data());
}

Status left_early(const EndpointState& state, const Round& round, FlowKind kind, Rank peer) {
  const ReceiveFlow& flow = round.receive(kind, peer);
  return Status::error(StatusCode::kPeerLost,
                       "rank %u: %s #%u: rank %u left the operation after %u "
                       "of %u packets (%s)",
                       state.config.own_name(), round.plan->name, round.number_said(),
                       state.config.known_as(peer), flow.arrived_count, flow.packets,
                       deadline_of(round).data());
}

Status died(const EndpointState& state, const Round& round, Rank peer) {
  return Status::error(StatusCode::kPeerLost,
                       "rank %u: %s #%u: rank %u is dead: it gave no sign of life for %.1f s, the "
                       "peer time-out",
                       state.config.own_name(), round.plan->name, round.number_said(),
                       state.config.known_as(peer), to_seconds(state.config.peer_timeout));
}

}  // namespace leeway::protocol
