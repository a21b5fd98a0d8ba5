// Errors for ranks that mean different operations, and for calls that failed at a peer.
#pragma once

#include <cstdint>

#include "leeway/status.h"
#include "protocol/round.h"

namespace leeway::protocol {

struct EndpointConfig;

// The error for a message that is longer than its receive has room for.
Status too_long(const Round& round, Rank from, std::uint64_t sent, Rank to, std::uint64_t room);

// The error of an uneven all_to_all in which a sender's count is not the one that its receiver
// expects.
Status unequal_pair(const Round& round, Rank from, std::uint64_t sent, Rank to,
                    std::uint64_t expected);

// The error for two ranks that mean different operations.
Status disagree(const EndpointConfig& config, const Round& round, Rank peer,
                const wire::OperationTag& theirs);

// Returns true if a peer's failure with this code means that the peer refused its own call. The
// peer's report then does not say which operation it meant.
bool is_refusal(StatusCode code);
// Returns true if a peer's failure with this code means that it and this rank make different calls.
// Then the collective fails on all ranks, whatever its delivery class.
bool makes_another_call(StatusCode code);

// Text about a peer that has given this rank up, after "rank N".
inline constexpr const char* kGaveUsUp =
    "gave this rank up as dead, having heard nothing of it for its peer time-out: was this process "
    "stopped?";

// The error for a collective that has failed at a peer, whose report gives the reason. `about` is
// as in wire::OpenRound.
Status failed_there(const EndpointConfig& config, const Round& round, Rank peer, StatusCode code,
                    Rank about);

}  // namespace leeway::protocol
