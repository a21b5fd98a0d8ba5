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

// Returns a peer for which the operation waits: one with an open flow, or the rank that absent()
// returns. Prefers peers that have not opened the collective, and among equals the one that was
// silent longest.
Awaited longest_silent(Instant now, const EndpointState& state, const Round& round);

// Returns a rank that exchanges no packets with this rank, but holds up the operation: it does not
// answer, or has not opened the operation. If there are several, returns the one that has been
// silent longest. Returns kNoRank until the operation has asked all ranks twice (Round::inquiries),
// so that they have time to answer.
Rank absent(Instant now, const EndpointState& state, const Round& round);

// Error for a collective whose deadline passed while it waited for earlier calls. The error names
// the rank for which the oldest open collective waits, if there is one.
Status overdue_behind(Instant now, const EndpointState& state, const char* name, Duration deadline);

// Error for an open operation whose deadline has passed. It names the rank that absent() returns,
// or, if there is none, the one that longest_silent() returns.
Status overdue(Instant now, const EndpointState& state, const Round& round);

// Error for an exact operation that cannot end because a peer is dead.
Status died(const EndpointState& state, const Round& round, Rank peer);

// Error for a peer that left the operation before all of its packets came.
Status left_early(const EndpointState& state, const Round& round, FlowKind kind, Rank peer);

}  // namespace leeway::protocol
