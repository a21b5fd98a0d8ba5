// Further lanes of a group that has met (Options::lanes).
#pragma once

#include "communicator/channels.h"
#include "communicator/udp_endpoint.h"
#include "leeway/options.h"
#include "rendezvous/group.h"
#include "rendezvous/log.h"

namespace leeway::internal {

struct LaneMeeting {
  const Options& options;  // with more than one lane
  const rendezvous::Group& group;
  const rendezvous::LocalConfiguration& local;
  // The endpoint that the lanes belong to. Null if this communicator has sockets of its own.
  UdpEndpoint* endpoint;
  bool measures_size;  // datagrams are as long as paths are measured to carry
  Duration patience;
  rendezvous::Log& log;
};

// Makes the lanes if datagrams go by UDP; paths of lane 0 must be proven. Ranks tell each other the
// addresses of their lanes by an exact all_gather over lane 0, and prove that datagrams pass. All
// ranks use the lanes, or all fail. Without UDP, or if memory connects all ranks, there is only
// lane 0, and the log says why.
Status join_lanes(const LaneMeeting& meeting, Channels& channels);

}  // namespace leeway::internal
