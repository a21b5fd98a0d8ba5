// Limits of what peers and strangers at a rendezvous's port may cost the process that owns it.
#pragma once

#include <chrono>
#include <cstddef>

#include "leeway/types.h"

namespace leeway::rendezvous {

// Tests shorten the times.
struct RendezvousLimits {
  // Connections that have not greeted. Beyond this one is closed, at random: so a flood cannot push
  // out all ranks that are on their way. A rank that is hit tries again.
  std::size_t half_open_max = 64;
  // The same of one network (/24, /48 of IPv6), loopback excepted.
  std::size_t half_open_network_max = 16;
  // From accepting a connection to its complete greeting, which a rank sends at once.
  Duration hello_timeout = std::chrono::seconds(3);
  // For one message to come or to leave, whole.
  Duration frame_timeout = std::chrono::seconds(30);
  // For a connection that waits for nothing and holds no key that is erased with it.
  Duration idle_timeout = std::chrono::seconds(60);
  // All connections: four groups of the most ranks. Beyond this the longest idle one is closed.
  std::size_t connections_max = 4096;
  // Keys, values and incomplete messages. The hellos and the table of the most ranks with two
  // addresses of 4 KiB each take 17 MiB.
  std::size_t bytes_max = std::size_t{64} << 20;
  // Gets that wait and answers that were not sent yet, of one connection: twice the most ranks.
  std::size_t requests_max = 2048;
  // The same of all connections; about 150 bytes each.
  std::size_t all_requests_max = std::size_t{1} << 18;
  // Time that rank 0 stays after a rank was refused, to tell the reason to ranks that have not come
  // yet.
  Duration linger = std::chrono::seconds(1);
  // A rank that waits logs for whom after this time, and again whenever it has waited twice as
  // long.
  Duration first_word = std::chrono::seconds(10);
};

}  // namespace leeway::rendezvous
