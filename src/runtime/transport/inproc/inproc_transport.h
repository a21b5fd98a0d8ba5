// Datagrams between threads of one process, for tests, examples and single-node use.
//
// Behaves like a network on purpose: send() never blocks and takes every train, a receiver's queue
// is bounded, and datagrams that find it full are dropped and counted there as kernel_drops.
// Datagrams between two ranks keep their order. Each is copied once; receive() lends the queue's
// own memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "leeway/transport.h"

namespace leeway::transport {

struct InprocOptions {
  std::size_t datagram_bytes = 8972;  // a jumbo frame's payload, as on loopback
  // Bytes of full datagrams that a rank's queue holds
  std::size_t receive_buffer_bytes = 4u << 20;
};

// `size` transports connected to each other; element i is rank i. They may be used by different
// threads, and destroyed in any order.
std::vector<std::unique_ptr<DatagramTransport>> make_inproc_group(
    int size, const InprocOptions& options = {});

}  // namespace leeway::transport
