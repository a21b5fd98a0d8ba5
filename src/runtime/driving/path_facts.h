// Facts about a path that was not proved, and the text that an operator reads: addresses, counts,
// the system's error, which way is broken, and what to do.
#pragma once

#include <cstdint>
#include <string>

#include "base/network_address.h"
#include "leeway/options.h"
#include "leeway/types.h"
#include "transport/whereabouts.h"

namespace leeway::driving {

struct PathFacts {
  Rank self = kNoRank;
  Rank peer = kNoRank;
  TransportKind kind = TransportKind::udp;
  bool sealed = false;
  bool heard = false;  // a datagram of the peer came for this communicator
  bool gone = false;   // it said good-bye
  std::uint32_t sent = 0;
  std::uint32_t arrived = 0;  // datagrams of `sent` that arrived, as the peer reported
  std::uint32_t came = 0;     // datagrams that came, for all communicators of the two processes
  // Addresses of this process and of the peer: those of the rendezvous, or the one to which the
  // peer has moved since. Unknown if the transport has no addresses.
  NetworkAddress own;
  NetworkAddress theirs;
  transport::SendRefusals refused;
  // Number of datagrams from addresses that are no rank's, and the latest of these addresses.
  std::uint64_t from_strangers = 0;
  NetworkAddress stranger;
};

// Returns what happened on the path, and the remedy. Ranks and times are in the caller's text.
std::string text_of(const PathFacts& facts);

}  // namespace leeway::driving
