// How long datagrams are that never leave a host: in rings, through UCX, over loopback.
#pragma once

#include <cstddef>

namespace leeway::transport {

// Two fit into a train; longer ones gain nothing.
inline constexpr std::size_t kNearDatagramBytes = 32'384;

}  // namespace leeway::transport
