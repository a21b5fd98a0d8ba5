// How much may be in flight to one peer, before anything was measured.
#pragma once

#include <algorithm>
#include <cstddef>

namespace leeway::protocol {

// Of a rank without congestion control. Enough for 100 Gb/s over 80 us; more only moves the queue
// from the sender to the receiver's socket buffer and out of its cache.
inline constexpr std::size_t kWindowBytesDefault = std::size_t{1} << 20;
// Of all links of a paced rank together: 10 Gb/s over 50 ms. Each link remembers what it sent (64
// bytes a datagram).
inline constexpr std::size_t kPacedWindowsBytes = std::size_t{64} << 20;

// To one of `peers`, whose system queues `receive_buffer_bytes` for all its senders together.
// `wanted`: by the user; 0: nothing.
inline std::size_t window_bytes(std::size_t receive_buffer_bytes, std::size_t peers, bool paced,
                                std::size_t wanted) {
  peers = std::max<std::size_t>(1, peers);
  const std::size_t share = receive_buffer_bytes / peers;
  if (!paced) return std::min(share, wanted != 0 ? wanted : kWindowBytesDefault);
  // What is paced arrives as fast as a line carries it, not all at once: the buffer must hold what
  // comes while its reader is busy, not all that is on its way. The controller's own window says
  // how much that may be.
  const std::size_t most = std::max(share, kPacedWindowsBytes / peers);
  return wanted != 0 ? std::min(most, wanted) : most;
}

}  // namespace leeway::protocol
