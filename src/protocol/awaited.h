// Whom an operation still waits for, and for what: what its error says.
#pragma once

#include <span>

#include "base/time.h"
#include "leeway/status.h"
#include "protocol/link.h"
#include "protocol/round.h"

namespace leeway::protocol {

// As people know a rank (EndpointConfig::names).
inline Rank known_as(std::span<const Rank> names, Rank rank) {
  return rank < names.size() ? names[rank] : rank;
}

struct Awaited {
  Rank peer = kNoRank;  // kNoRank: nobody
  FlowKind kind = FlowKind::reduce;
  bool data = false;  // its packets, rather than its confirmation
};

// The peer that has been silent longest among those the operation waits for, absent() among them.
Awaited longest_silent(Instant now, Rank self, const Round& round, std::span<const Link> links);

// A rank that others wait for: the operation needs it, exchanges no packets with it, and has asked
// all. It does not answer, or has not opened the operation. Of several, the one silent longest.
Rank absent(Instant now, Rank self, const Round& round, std::span<const Link> links);

// The deadline has passed: names the absent rank, else the one silent longest.
Status overdue(Instant now, Rank self, const Round& round, std::span<const Link> links,
               std::span<const Rank> names);

// The peer is dead: an exact operation with it cannot end.
Status died(Rank self, const Round& round, Rank peer, Duration peer_timeout,
            std::span<const Rank> names);

// The peer has left the operation before all of its packets came.
Status left_early(Rank self, const Round& round, FlowKind kind, Rank peer,
                  std::span<const Rank> names);

}  // namespace leeway::protocol
