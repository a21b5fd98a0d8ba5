// Names the peer that an operation still waits for, and writes the text of its error.
#pragma once

#include <span>

#include "base/time.h"
#include "leeway/status.h"
#include "protocol/link.h"
#include "protocol/round.h"

namespace leeway::protocol {

// Returns the name by which people know a rank (EndpointConfig::names).
inline Rank known_as(std::span<const Rank> names, Rank rank) {
  return rank < names.size() ? names[rank] : rank;
}

struct Awaited {
  Rank peer = kNoRank;  // kNoRank: no peer is awaited
  FlowKind kind = FlowKind::reduce;
  bool data = false;  // its packets are awaited, rather than its confirmation
};

// Returns the peer that has been silent longest among those the operation waits for, including
// absent().
Awaited longest_silent(Instant now, Rank self, const Round& round, std::span<const Link> links);

// Returns a rank that holds up the operation although it exchanges no packets with this one: the
// rank does not answer, or has not opened the operation. If there are several, returns the one that
// has been silent longest. Returns kNoRank before two inquiries were made (Round::inquiries), so
// that peers had time to answer.
Rank absent(Instant now, Rank self, const Round& round, std::span<const Link> links);

// Error for a collective whose deadline passed before it could be opened. It names the rank for
// which the oldest of those that are open waits.
Status overdue_behind(Instant now, Rank self, const char* name, Duration deadline,
                      std::span<Round* const> open, std::span<const Link> links,
                      std::span<const Rank> names);

// Error for a deadline that has passed. It names the absent rank, or otherwise the rank that has
// been silent longest.
Status overdue(Instant now, Rank self, const Round& round, std::span<const Link> links,
               std::span<const Rank> names);

// Error for an exact operation with a dead peer: it cannot end.
Status died(Rank self, const Round& round, Rank peer, Duration peer_timeout,
            std::span<const Rank> names);

// Error for a peer that left the operation before all of its packets came.
Status left_early(Rank self, const Round& round, FlowKind kind, Rank peer,
                  std::span<const Rank> names);

}  // namespace leeway::protocol
