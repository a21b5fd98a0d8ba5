// How a rank joins a group: from open transports to channels whose paths are proven.
#pragma once

#include "communicator/channels.h"
#include "communicator/udp_endpoint.h"
#include "rendezvous/candidate.h"
#include "rendezvous/log.h"

namespace leeway::internal {

// Meets the other ranks, connects the transport that all agreed on, and hears from every rank over
// it. Takes at most options.join_timeout, plus a second for proofs if the meeting took all of it.
//
// `seat`: the seat on the endpoint whose socket is among the candidates; or null. Returns
// kCancelled soon after the caller asked through candidates.local.stop. Afterwards
// `options.congestion` and `options.lanes` hold the choices that were made.
Result<std::unique_ptr<Channels>> join(Options& options, rendezvous::Candidates candidates,
                                       rendezvous::Log& log,
                                       std::unique_ptr<UdpEndpoint::Seat> seat = nullptr);

// Time to prove the paths. All ranks have arrived when it begins, and a busy rank still answers
// within it. A path that has passed no datagram when it ends is blocked.
inline constexpr Duration kPathProofTime = std::chrono::seconds(10);

// Returns a function that logs the known facts about each path that failed.
Channel::TellPath tell_paths(rendezvous::Log& log);

// Votes by a call that goes as datagrams. All ranks must call this function at the same place in
// the order of their calls. Returns true if all ranks say yes.
Result<bool> all_say(Channels& channels, bool yes);

}  // namespace leeway::internal
