// What there is on this host for each transport, and small trials of it, for `leeway doctor` and
// for people in doubt. Nothing here is on the way of a communicator.
#pragma once

#include <asio/ip/address.hpp>
#include <string>
#include <vector>

#include "leeway/options.h"
#include "leeway/status.h"

namespace leeway::rendezvous {

struct TransportDevice {
  std::string name;   // "mlx5_0 port 1", "posix"
  std::string facts;  // for people: state, MTU, addresses
  bool usable = true;
  std::string remedy;  // where it is not
};

struct TransportSurvey {
  Status obstacle;      // this build is without the transport, or the host has nothing for it
  std::string library;  // "UCX 1.13.1"; may be empty
  std::vector<TransportDevice> devices;
};
TransportSurvey survey_verbs();
TransportSurvey survey_ucx();

// The address from which this host would speak: Options::bind_address, else towards the rendezvous,
// else on the way to other networks, else loopback.
asio::ip::address likely_address(const Options& options);

// What `automatic` comes to where all ranks are as this one, at `address`.
struct AutomaticChoice {
  TransportKind datagrams = TransportKind::udp;
  std::string why;  // not verbs
  // Between ranks of this host and this network namespace; what leads to others only they can say.
  bool exact_over_ucx = false;
  std::string ucx;  // how UCX would connect them, or why it would not
};
AutomaticChoice choose_automatically(const Options& options, const asio::ip::address& address);

// Whether the interface of `address` carries multicast at all, tried from one socket to another on
// this host.
Status try_multicast(const asio::ip::address& address);

}  // namespace leeway::rendezvous
