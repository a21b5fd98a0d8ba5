// A rank on its way into a group: from transports that are open to channels that have proven them.
#pragma once

#include "communicator/channels.h"
#include "communicator/udp_endpoint.h"
#include "rendezvous/candidate.h"
#include "rendezvous/log.h"

namespace leeway::internal {

// Meets the other ranks, connects the lanes that all agreed on, and hears from every rank over
// them. Takes at most options.join_timeout, and where the meeting took all of it a second for
// proofs.
//
// Where the group has a lane for exact calls (WIRE 7.10), it is used if, on every rank, three
// things hold there: every other rank is reached by more than TCP; every other rank's datagrams
// wake this rank from its sleep; and this rank hears every other. All ranks agree by two votes over
// the datagrams. The log says why the lane is not used; only a vote that fails is an error.
//
// `seat`: on the endpoint whose socket is among the candidates; or null. kCancelled soon after the
// caller asked through candidates.local.stop. `options.congestion` and `options.lanes` are what was
// chosen, afterwards.
Result<std::unique_ptr<Channels>> join(Options& options, rendezvous::Candidates candidates,
                                       rendezvous::Log& log,
                                       std::unique_ptr<UdpEndpoint::Seat> seat = nullptr);

// All ranks are there when the paths between them are to be proved, and one that is busy still
// answers within this time: what did not pass by then is blocked.
inline constexpr Duration kPathProofTime = std::chrono::seconds(10);

// Logs what is known of each path that failed.
Channel::TellPath tell_paths(rendezvous::Log& log);

// A vote over the datagrams, which all ranks take at the same place in the order of their calls:
// whether all say yes.
Result<bool> all_say(Channels& channels, bool yes);

}  // namespace leeway::internal
