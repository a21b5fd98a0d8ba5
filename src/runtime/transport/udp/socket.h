// Makes a UDP socket ready for the data path and says what the kernel granted.
#pragma once

#include <asio/ip/udp.hpp>
#include <cstddef>

#include "leeway/status.h"
#include "transport/udp/address.h"

namespace leeway::transport {

struct UdpSocketRequest {
  UdpAddress local;              // for port 0 the kernel chooses one
  std::size_t buffer_bytes = 0;  // per direction
  bool segmentation = true;      // UDP_SEGMENT, if the kernel has it
  bool coalescing = true;        // UDP_GRO, if the kernel has it
  // If true, other sockets of this host may have the same address and port. Only for multicast
  // groups.
  bool shared = false;
};

// What the kernel granted. Buffer sizes are as the kernel accounts them: it charges every datagram
// for its bookkeeping, too.
struct UdpSocketGrant {
  bool segmentation = false;
  bool coalescing = false;
  std::size_t receive_account_bytes = 0;
  std::size_t send_account_bytes = 0;
};

// Opens, binds and configures the socket. It is non-blocking, never fragments, and has large
// buffers. They exceed net.core.rmem_max (and wmem_max) if the process may do that, else they reach
// it. Only a failed open or bind is an error.
Result<UdpSocketGrant> open_udp_socket(asio::ip::udp::socket& socket,
                                       const UdpSocketRequest& request);

// Sends this socket's datagrams with ECT(0) from now on, so queues may mark them instead of
// dropping them. Only for senders that slow down for marks.
void allow_marks(asio::ip::udp::socket& socket, bool v6);

// Returns the payload bytes in datagrams of `datagram_bytes` that certainly fit into a receive
// buffer to which the kernel accounts `account_bytes`, however they arrive.
std::size_t payload_capacity(std::size_t account_bytes, std::size_t datagram_bytes);

}  // namespace leeway::transport
