// Small trials of the transports of this host, for `leeway doctor`. Nothing here is on the way of a
// communicator.
#pragma once

#include <asio/ip/address.hpp>
#include <string>

#include "leeway/options.h"
#include "leeway/status.h"

namespace leeway::rendezvous {

// The address from which this host would send: Options::bind_address, else the one towards the
// rendezvous, else the one towards other networks, else loopback.
asio::ip::address likely_address(const Options& options);

// The outcome of `automatic` if all ranks are as this one, at `address`.
struct AutomaticChoice {
  TransportKind datagrams = TransportKind::udp;
  std::string why;  // why not verbs
};
AutomaticChoice choose_automatically(const Options& options, const asio::ip::address& address);

// Checks that the interface of `address` carries multicast at all. It is tried from one socket to
// another on this host.
Status try_multicast(const asio::ip::address& address);

}  // namespace leeway::rendezvous
