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
  bool heard = false;  // anything of the peer came for this communicator
  bool gone = false;   // it said good-bye
  std::uint32_t sent = 0;
  std::uint32_t arrived = 0;  // of these, as the peer reported
  std::uint32_t came = 0;     // of all communicators of the two processes
  // Addresses as all ranks were told them, or where the peer was found since. They are not known if
  // the transport has none.
  NetworkAddress own;
  NetworkAddress theirs;
  transport::SendRefusals refused;
  // Datagrams of addresses that are no rank's, and the latest of these addresses.
  std::uint64_t from_strangers = 0;
  NetworkAddress stranger;
};

// What happened on the path, and the remedy; without ranks and times, which the caller's text has.
std::string text_of(const PathFacts& facts);

}  // namespace leeway::driving
