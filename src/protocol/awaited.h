// Whom an operation still waits for, and for what: what its error says.
#pragma once

#include <span>

#include "base/time.h"
#include "leeway/status.h"
#include "protocol/link.h"
#include "protocol/round.h"

namespace leeway::protocol {

struct Awaited {
  Rank peer = kNoRank;  // kNoRank: nobody
  FlowKind kind = FlowKind::reduce;
  bool data = false;  // its packets, rather than its confirmation
};

// The peer that has been silent longest among those the operation waits for.
Awaited longest_silent(Instant now, const Round& round, std::span<const Link> links);

// The deadline has passed: names that peer.
Status overdue(Instant now, Rank self, const Round& round, std::span<const Link> links);

// The peer is dead: an exact operation with it cannot end.
Status died(Rank self, const Round& round, Rank peer, Duration peer_timeout);

// The peer has left the operation before all of its packets came.
Status left_early(Rank self, const Round& round, FlowKind kind, Rank peer);

}  // namespace leeway::protocol
