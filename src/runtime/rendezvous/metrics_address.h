// The address at which a process answers Prometheus: "host:port", or "public:host:port".
//
// The answers are neither encrypted nor kept from anyone who reaches the port. So an address that
// the internet may reach, or all addresses of a host at once, must be asked for by "public:".
#pragma once

#include <string>
#include <string_view>

#include "leeway/status.h"
#include "rendezvous/address.h"

namespace leeway::rendezvous {

struct MetricsAddress {
  HostPort where;             // an address, no name; with port 0 the system chooses
  bool asked_public = false;  // "public:" stood before it
};

// Returns kInvalidArgument if `text` is no address, or a public address without "public:".
Result<MetricsAddress> parse_metrics_address(std::string_view text);

// The address for the `place`-th process of a host: its port is higher by `place`. Port 0 stays 0.
Result<MetricsAddress> shifted(MetricsAddress address, int place);

// parse_metrics_address()'s inverse.
std::string to_text(const MetricsAddress& address);

}  // namespace leeway::rendezvous
