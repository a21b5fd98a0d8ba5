#include "rendezvous/tcp_socket.h"

// The kernel's header, because tcp_info in glibc's <netinet/tcp.h> ends before tcpi_min_rtt. A file
// cannot include both headers.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace leeway::rendezvous {
namespace {

// The option TCP_RTO_MAX_MS of Linux 6.15. System headers may be older.
constexpr int kTcpRtoMaxMs = 44;
constexpr int kRepeatMaxMs = 1000;

void set(int socket, int option, int value) {
  (void)::setsockopt(socket, IPPROTO_TCP, option, &value, sizeof value);
}

}  // namespace

void speak_promptly(int socket) {
  set(socket, TCP_NODELAY, 1);
  set(socket, TCP_THIN_LINEAR_TIMEOUTS, 1);  // for the first six repeats
  set(socket, kTcpRtoMaxMs, kRepeatMaxMs);   // for further ones
}

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
