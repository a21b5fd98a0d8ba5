// Parses the reports that UCX prints about itself for people. Up to UCX 1.13 there is no other way
// to learn which devices and lanes it uses.
#pragma once

#include <ucp/api/ucp.h>

#include <string>
#include <string_view>
#include <vector>

#include "leeway/status.h"

namespace leeway::transport {

// One device of one of UCX's transports.
struct UcxResource {
  std::string transport;  // "posix", "rc_mlx5", "tcp", ...
  std::string device;     // "memory", "mlx5_0:1", "eth0", ...
};

// Returns the transports that a worker would choose from under the user's environment (UCX_TLS,
// UCX_NET_DEVICES, ...), for `leeway doctor`. Takes some milliseconds. Returns kUnavailable if UCX
// finds nothing that it can use.
Result<std::vector<UcxResource>> list_ucx_transports();

// Returns "transport/device" of everything that `context` may use.
std::vector<std::string> ucx_resources(ucp_context_h context);

// Returns "transport/device" of every lane of `endpoint` that carries active messages.
std::vector<std::string> ucx_lanes(ucp_ep_h endpoint);

namespace internal {

// Parse the text of ucp_context_print_info() and ucp_ep_print_info(). Lines of another form are
// skipped.
std::vector<std::string> resources_in(std::string_view text);
std::vector<std::string> lanes_in(std::string_view text);

}  // namespace internal
}  // namespace leeway::transport
