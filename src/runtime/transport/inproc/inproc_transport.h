// Datagrams between threads of one process, for tests, examples and single-node use.
//
// Behaves like a network on purpose. send() never blocks and takes every train. A receiver's queue
// is bounded; datagrams that find it full are dropped, and the receiver counts them as
// kernel_drops. Datagrams between two ranks keep their order. Each datagram is copied once;
// receive() lends the queue's own memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "leeway/transport.h"

namespace leeway::transport {

struct InprocOptions {
  std::size_t datagram_bytes = 8972;  // a jumbo frame's payload, as on loopback
  // Length of a rank's queue, in bytes of datagrams of full length
  std::size_t receive_buffer_bytes = 4u << 20;
};

// Makes `size` transports that are connected to each other; element i is rank i. They may be used
// by different threads, and destroyed in any order.
std::vector<std::unique_ptr<DatagramTransport>> make_inproc_group(
    int size, const InprocOptions& options = {});

}  // namespace leeway::transport
