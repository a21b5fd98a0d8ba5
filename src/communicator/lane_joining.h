// The further lanes of a group that has met (Options::lanes).
#pragma once

#include "communicator/channels.h"
#include "communicator/udp_endpoint.h"
#include "leeway/options.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/log.h"

namespace leeway::internal {

struct LaneMeeting {
  const Options& options;  // with more than one lane
  const rendezvous::Group& group;
  const rendezvous::LocalConfiguration& local;
  UdpEndpoint* endpoint;  // whose lanes they are; null: this communicator has sockets of its own
  bool measures_size;     // paths say how long datagrams may be
  Duration patience;
  rendezvous::Log& log;
};

// Where datagrams go by UDP, and paths of lane 0 are proven: ranks tell each other by an exact
// all_gather over lane 0 where their lanes are, prove that datagrams pass, and all use them or all
// fail. Elsewhere the log says why there is one lane.
Status join_lanes(const LaneMeeting& meeting, Channels& channels);

}  // namespace leeway::internal
