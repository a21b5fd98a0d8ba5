#include "rendezvous/tcp_round_trip.h"

// The kernel's own header: glibc's tcp_info ends before tcpi_min_rtt. The two exclude each other.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace leeway::rendezvous {

Duration least_round_trip(int socket) {
  constexpr std::uint32_t kNone = UINT32_MAX;  // the kernel's own, before the first sample
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return Duration(0);
  if (bytes < offsetof(tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt) return Duration(0);
  if (info.tcpi_min_rtt == kNone) return Duration(0);
  return std::chrono::microseconds(info.tcpi_min_rtt);
}

}  // namespace leeway::rendezvous
