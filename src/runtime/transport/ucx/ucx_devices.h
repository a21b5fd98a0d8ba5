// The devices and transports that UCX can use on this host, for `leeway doctor`.
#pragma once

#include <string>
#include <vector>

#include "leeway/status.h"

namespace leeway::transport {

// One device of one of UCX's transports.
struct UcxResource {
  std::string transport;  // "posix", "rc_mlx5", "tcp", ...
  std::string device;     // "memory", "mlx5_0:1", "eth0", ...
};

// The library's version: "1.13.1".
std::string ucx_version();

// Returns the transports that a worker would choose from, as the user's environment (UCX_TLS,
// UCX_NET_DEVICES, ...) leaves them. Takes some milliseconds. Returns kUnavailable if UCX finds
// nothing that it can use.
Result<std::vector<UcxResource>> list_ucx_transports();

}  // namespace leeway::transport
