// UCX's reports about itself for people, read by a program: up to 1.13 its API says nothing else
// about devices and lanes.
#pragma once

#include <ucp/api/ucp.h>

#include <string>
#include <string_view>
#include <vector>

namespace leeway::transport {

// "transport/device" of everything that `context` may use.
std::vector<std::string> ucx_resources(ucp_context_h context);

// "transport/device" of every lane of `endpoint` that carries active messages.
std::vector<std::string> ucx_lanes(ucp_ep_h endpoint);

namespace internal {

// From the text of ucp_context_print_info() and ucp_ep_print_info(). Lines that look otherwise are
// skipped.
std::vector<std::string> resources_in(std::string_view text);
std::vector<std::string> lanes_in(std::string_view text);

}  // namespace internal
}  // namespace leeway::transport
