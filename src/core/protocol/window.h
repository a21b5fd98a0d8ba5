// Window towards one peer, in bytes, before anything was measured.
#pragma once

#include <algorithm>
#include <cstddef>

namespace leeway::protocol {

// Window without congestion control: enough for 100 Gb/s over 80 us. A larger one only moves the
// queue from the sender to the receiver's socket buffer, and out of the cache.
inline constexpr std::size_t kWindowBytesDefault = std::size_t{1} << 20;
// Windows of all links of a paced rank together: 10 Gb/s over 50 ms. More would take much memory,
// as each link keeps 64 bytes for each datagram that it remembers.
inline constexpr std::size_t kPacedWindowsBytes = std::size_t{64} << 20;

// Returns the window to one of `peers` peers. The peer's system queues `receive_buffer_bytes` for
// all its senders together. `wanted` is the user's choice, 0 if there is none.
inline std::size_t window_bytes(std::size_t receive_buffer_bytes, std::size_t peers, bool paced,
                                std::size_t wanted) {
  peers = std::max<std::size_t>(1, peers);
  const std::size_t share = receive_buffer_bytes / peers;
  if (!paced) return std::min(share, wanted != 0 ? wanted : kWindowBytesDefault);
  // Paced data arrives as fast as a link carries it, not all at once. So the buffer must hold only
  // the data that comes while its reader is busy, and the window may exceed the peer's share. The
  // controller's own window limits the data in flight.
  const std::size_t most = std::max(share, kPacedWindowsBytes / peers);
  return wanted != 0 ? std::min(most, wanted) : most;
}

}  // namespace leeway::protocol
