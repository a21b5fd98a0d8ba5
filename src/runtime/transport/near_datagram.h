// How long datagrams are that never leave a host: in rings, through UCX, over loopback.
#pragma once

#include <cstddef>

namespace leeway::transport {

// Two fit into a train; longer ones gain nothing. UCX adds up to 40 bytes of its own to a segment.
inline constexpr std::size_t kNearDatagramBytes = 32'384;

}  // namespace leeway::transport
