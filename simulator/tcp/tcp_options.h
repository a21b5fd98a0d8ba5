// Settings of a TCP connection. The defaults are those of Linux.
#pragma once

#include <cstdint>

namespace leeway::sim {

enum class TcpCongestion : std::uint8_t { cubic, bbr };

struct TcpOptions {
  TcpCongestion congestion = TcpCongestion::cubic;

  // A packet has 1500 bytes: IPv4 20, TCP 20, timestamps 12, data 1448.
  std::uint32_t segment_bytes = 1448;
  std::uint32_t header_bytes = 52;

  std::uint32_t initial_window = 10;      // segments, RFC 6928
  std::uint32_t receive_window = 65'536;  // segments; large enough not to matter

  std::int64_t rto_initial_ns = 1'000'000'000;  // RFC 6298; before the first measurement
  std::int64_t rto_min_ns = 200'000'000;
  std::int64_t rto_max_ns = 120'000'000'000;
  // Round trip time measured by the handshake; 0 without a handshake.
  std::int64_t handshake_rtt_ns = 0;

  std::int64_t delayed_ack_ns = 40'000'000;
  std::uint32_t quick_acks = 16;  // number of first segments that are acknowledged at once

  // If true, an idle sender's window is halved once for each timeout that it was idle, down to the
  // initial window (RFC 5681 section 4.1, as in RFC 2861).
  bool idle_restart = true;
  bool ecn = false;  // RFC 3168
};

}  // namespace leeway::sim
