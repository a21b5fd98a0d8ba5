// Limits of what peers and strangers at a rendezvous's port may cost the process that owns it.
#pragma once

#include <chrono>
#include <cstddef>

#include "leeway/types.h"

namespace leeway::rendezvous {

// Tests shorten the times.
struct RendezvousLimits {
  // Limit on connections that have not greeted. Beyond it a random one of these is closed. So a
  // flood of strangers cannot push out all ranks that are connecting. A rank whose connection is
  // closed tries again.
  std::size_t half_open_max = 64;
  // Limit on connections from one network (/24, /48 of IPv6) that have not greeted. Loopback has no
  // such limit.
  std::size_t half_open_network_max = 16;
  // Longest time until a connection has greeted. A rank greets at once.
  Duration hello_timeout = std::chrono::seconds(3);
  // Longest time for a whole message to arrive or to leave.
  Duration frame_timeout = std::chrono::seconds(30);
  // Longest idle time of a connection that has neither waiting requests nor keys that are erased
  // with it.
  Duration idle_timeout = std::chrono::seconds(60);
  // Limit on connections: four of the largest groups. Beyond it the one idle longest is closed.
  std::size_t connections_max = 4096;
  // Limit on the bytes of keys, values and incomplete messages. The Hellos and the table of the
  // largest group, with two addresses of 4 KiB for each rank, take 17 MiB.
  std::size_t bytes_max = std::size_t{64} << 20;
  // Limit on the requests of a connection (waiting gets and unsent answers): twice the number of
  // ranks of the largest group.
  std::size_t requests_max = 2048;
  // Limit on the requests of all connections together; a request takes about 150 bytes.
  std::size_t all_requests_max = std::size_t{1} << 18;
  // Time that rank 0 stays after a rank was refused, to tell the reason to ranks that have not come
  // yet.
  Duration linger = std::chrono::seconds(1);
  // A rank that waits logs after this time which ranks are missing, and again whenever it has
  // waited twice as long.
  Duration first_word = std::chrono::seconds(10);
};

}  // namespace leeway::rendezvous
