// Where a process answers Prometheus: "host:port", or "public:host:port".
//
// What is read there is neither encrypted nor kept from anyone who reaches the port. So an address
// that the internet may reach, or all addresses of a host at once, must be asked for by "public:".
#pragma once

#include <string>
#include <string_view>

#include "leeway/status.h"
#include "rendezvous/address.h"

namespace leeway::rendezvous {

struct MetricsAddress {
  HostPort where;             // an address, no name; port 0: a free one
  bool asked_public = false;  // "public:" stood before it
};

// kInvalidArgument: it is none, or a public one without "public:".
Result<MetricsAddress> parse_metrics_address(std::string_view text);

// Of the `place`-th process of a host: the port so much higher; port 0 stays.
Result<MetricsAddress> shifted(MetricsAddress address, int place);

// parse_metrics_address()'s inverse.
std::string to_text(const MetricsAddress& address);

}  // namespace leeway::rendezvous
