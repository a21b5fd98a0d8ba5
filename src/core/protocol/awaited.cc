#include "protocol/awaited.h"

#include <array>
#include <cstdio>
#include <utility>

#include "base/duration_text.h"

namespace leeway::protocol {
namespace {

// Text for errors, such as "deadline 200 ms".
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

// After this number of inquiries peers have had time to answer the inquiry before.
constexpr std::uint32_t kInquiriesAnswered = 2;

Duration silence_of(const Link& link, Instant now) {
  return link.heard ? link.silence(now) : Duration::max();
}

}  // namespace

Rank absent(Instant now, Rank self, const Round& round, std::span<const Link> links) {
  Rank longest = kNoRank;
  if (round.inquiries < kInquiriesAnswered) return longest;
  for (Rank peer = 0; peer < links.size(); ++peer) {
    const Link& link = links[peer];
    if (peer == self || link.gone || round.exchanges_with(peer)) continue;
    const bool answers = link.watch.unanswered(now) == Duration(0);
    if (answers && link.has_opened(round.number, /*message=*/false)) continue;
    if (longest == kNoRank || silence_of(link, now) > silence_of(links[longest], now))
      longest = peer;
  }
  return longest;
}

Awaited longest_silent(Instant now, Rank self, const Round& round, std::span<const Link> links) {
  Awaited longest{absent(now, self, round, links)};
  // A rank that has not begun holds up those that have.
  const auto blame = [&](Rank peer) {
    const bool late = !round.plan->point_to_point() && !links[peer].has_opened(round.number, false);
    return std::pair(late, silence_of(links[peer], now));
  };
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    if (!round.plan->phases[k].active) continue;
    const auto kind = static_cast<FlowKind>(k);
    const Rank end = round.end_peer(static_cast<int>(links.size()));
    for (Rank peer = round.first_peer(); peer < end; ++peer) {
      const bool data = round.receive(kind, peer).open();
      if (!data && !round.send(kind, peer).open()) continue;
      if (longest.peer != kNoRank && blame(peer) <= blame(longest.peer)) continue;
      longest = {peer, kind, data};
    }
  }
  return longest;
}

Status overdue(Instant now, Rank self, const Round& round, std::span<const Link> links,
               std::span<const Rank> names) {
  const Rank us = known_as(names, self);
  if (const Rank peer = absent(now, self, round, links); peer != kNoRank) {
    const bool opened = links[peer].has_opened(round.number, /*message=*/false);
    return Status::error(StatusCode::kDeadlineExceeded,
                         "rank %u: %s #%u: Timed out (%s): rank %u %s", us, round.plan->name,
                         round.number_said(), deadline_of(round).data(), known_as(names, peer),
                         opened ? "does not answer" : "has not begun it");
  }
  const Awaited awaited = longest_silent(now, self, round, links);
  if (awaited.peer == kNoRank) {
    return Status::error(StatusCode::kInternal,
                         "rank %u: %s #%u: deadline passed although nothing was missing", us,
                         round.plan->name, round.number_said());
  }
  const Rank them = known_as(names, awaited.peer);
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

Status overdue_behind(Instant now, Rank self, const char* name, Duration deadline,
                      std::span<Round* const> open, std::span<const Link> links,
                      std::span<const Rank> names) {
  std::array<char, 96> why{"what earlier calls send has not left this host"};
  if (!open.empty()) {
    const Round& oldest = *open.front();
    Rank late = longest_silent(now, self, oldest, links).peer;
    for (Rank peer = 0; peer < links.size() && late == kNoRank; ++peer) {
      if (peer != self && !links[peer].has_opened(oldest.number, false)) late = peer;
    }
    const int written =
        std::snprintf(why.data(), why.size(), "%zu calls before it are not over; the oldest is #%u",
                      open.size(), oldest.number_said());
    const auto end = static_cast<std::size_t>(written);
    if (late != kNoRank)
      std::snprintf(why.data() + end, why.size() - end, ", for which rank %u is late",
                    known_as(names, late));
  }
  return Status::error(StatusCode::kDeadlineExceeded, "rank %u: %s: Timed out (deadline %s): %s",
                       known_as(names, self), name, in_milliseconds(deadline).data(), why.data());
}

Status left_early(Rank self, const Round& round, FlowKind kind, Rank peer,
                  std::span<const Rank> names) {
  const ReceiveFlow& flow = round.receive(kind, peer);
  return Status::error(StatusCode::kPeerLost,
                       "rank %u: %s #%u: rank %u left the operation after %u "
                       "of %u packets (%s)",
                       known_as(names, self), round.plan->name, round.number_said(),
                       known_as(names, peer), flow.arrived_count, flow.packets,
                       deadline_of(round).data());
}

Status died(Rank self, const Round& round, Rank peer, Duration peer_timeout,
            std::span<const Rank> names) {
  return Status::error(StatusCode::kPeerLost,
                       "rank %u: %s #%u: rank %u is dead: it gave no sign of life for %.1f s, the "
                       "peer time-out",
                       known_as(names, self), round.plan->name, round.number_said(),
                       known_as(names, peer), static_cast<double>(peer_timeout.count()) / 1e9);
}

}  // namespace leeway::protocol
