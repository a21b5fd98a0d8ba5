// Length of datagrams that stay within a host: in rings, through UCX, over loopback.
#pragma once

#include <cstddef>

namespace leeway::transport {

// Two such datagrams fit into a train (kTrainBytesMax), and longer ones gain nothing. UCX adds up
// to 40 bytes of its own, and the sum fits into its segments of 32 KiB.
inline constexpr std::size_t kNearDatagramBytes = 32'384;

}  // namespace leeway::transport
