// How ranks become a group. All messages go through a store that every rank reaches
// (leeway/rendezvous.h). Rank 0 puts an invitation. Every other rank puts its configuration and the
// address of its data socket. Rank 0 checks that all agree and puts the table of members. Messages:
// proto/README.md, section 7.
//
// join_group() blocks its caller. Unless the caller gives a store, rank 0 serves one over TCP for
// as long as Group::place is held. No other connection outlives the call.
#pragma once

#include "leeway/status.h"
#include "rendezvous/group.h"
#include "rendezvous/rendezvous_limits.h"

namespace leeway::rendezvous {

class Log;

// The errors if Options::rendezvous is not set, or is not an address (`why`).
Status rendezvous_unknown(int rank);
Status rendezvous_refused(const Status& why);

// Meets the other ranks. Fails within the shortest join_timeout of all ranks:
//   kInvalidArgument  this rank's own configuration makes no sense, or the host name does not exist
//   kUnavailable      rank 0 cannot listen, is absent, or ranks are missing; the text lists them
//   kMismatch         ranks disagree (rank taken twice, size, version, window, lanes, transport,
//                     multicast, address family, secret); names both sides
//   kUnsupported      a rank cannot use the transport that all ask for; names the rank and says why
// When one rank does not fit, all ranks fail with the same text. Ranks with another name or restart
// count form another group. A group of size 1 uses no network. `log` may be null.
Result<Group> join_group(const LocalConfiguration& local, Log* log = nullptr,
                         const RendezvousLimits& limits = {});

}  // namespace leeway::rendezvous
