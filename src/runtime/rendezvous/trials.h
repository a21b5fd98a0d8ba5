// Small trials of the transports of this host, only for `leeway doctor`.
#pragma once

#include <asio/ip/address.hpp>
#include <string>

#include "leeway/options.h"
#include "leeway/status.h"

namespace leeway::rendezvous {

// The address from which this host would send: Options::bind_address, else the one towards the
// rendezvous, else the one towards other networks, else loopback.
asio::ip::address likely_address(const Options& options);

// The transport that `automatic` chooses if every rank has a host like this one.
struct AutomaticChoice {
  TransportKind datagrams = TransportKind::udp;
  std::string why;  // why not verbs
};
AutomaticChoice choose_automatically(const Options& options, const asio::ip::address& address);

// Checks that the interface of `address` carries multicast, by a datagram between two sockets of
// this host.
Status try_multicast(const asio::ip::address& address);

}  // namespace leeway::rendezvous
