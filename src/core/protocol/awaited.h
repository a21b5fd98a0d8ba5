// Names the peer that an operation still waits for, and writes the text of its error.
#pragma once

#include "base/time.h"
#include "leeway/status.h"
#include "protocol/endpoint_state.h"

namespace leeway::protocol {

struct Awaited {
  Rank peer = kNoRank;  // kNoRank: no peer is awaited
  FlowKind kind = FlowKind::reduce;
  bool data = false;  // its packets are awaited, rather than its confirmation
};

// Returns the peer that has been silent longest among those for which the operation waits,
// absent() included. A peer that has not opened the operation comes before those that have.
Awaited longest_silent(Instant now, const EndpointState& state, const Round& round);

// Returns a rank that holds up the operation although it exchanges no packets with this one: the
// rank does not answer, or has not opened the operation. If there are several, returns the one that
// has been silent longest. Returns kNoRank before two inquiries were made (Round::inquiries), so
// that peers had time to answer.
Rank absent(Instant now, const EndpointState& state, const Round& round);

// Error for a collective whose deadline passed before it could be opened. It names the rank for
// which the oldest open collective waits.
Status overdue_behind(Instant now, const EndpointState& state, const char* name, Duration deadline);

// Error for a deadline that has passed. It names the absent rank, or otherwise the rank that has
// been silent longest.
Status overdue(Instant now, const EndpointState& state, const Round& round);

// Error for an exact operation that cannot end because a peer is dead.
Status died(const EndpointState& state, const Round& round, Rank peer);

// Error for a peer that left the operation before all of its packets came.
Status left_early(const EndpointState& state, const Round& round, FlowKind kind, Rank peer);

}  // namespace leeway::protocol
