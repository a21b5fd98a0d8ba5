#include "transport/udp/socket.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/descriptors.h"
#include "leeway/transport.h"

namespace leeway::transport {
namespace {

bool set_option(int socket, int level, int name, int value) {
  return setsockopt(socket, level, name, &value, sizeof(value)) == 0;
}

std::size_t option(int socket, int level, int name) {
  int value = 0;
  socklen_t bytes = sizeof(value);
  return getsockopt(socket, level, name, &value, &bytes) == 0 && value > 0
             ? static_cast<std::size_t>(value)
             : 0;
}

// Asks for a buffer of `bytes` bytes. Returns the size that was granted. The option `forced` needs
// CAP_NET_ADMIN and may exceed net.core.*mem_max; `plain` is cut to that limit without an error.
std::size_t enlarge(int socket, int forced, int plain, std::size_t bytes) {
  // The kernel doubles the value, so half of int's range is the largest value that makes sense.
  const std::size_t most = std::numeric_limits<int>::max() / 2;
  const int value = static_cast<int>(std::min(bytes, most));
  if (!set_option(socket, SOL_SOCKET, forced, value)) set_option(socket, SOL_SOCKET, plain, value);
  return option(socket, SOL_SOCKET, plain);
}

// Fragmentation multiplies loss, because one lost fragment loses the datagram. With PROBE the
// kernel refuses datagrams longer than the interface's own MTU. With DO it would also believe
// routers' messages, which anyone can forge, and refuse datagrams that the path carries.
void forbid_fragments(int socket, bool v6) {
  if (v6) {
    set_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  } else {
    set_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  }
}

// Reads the marks that queues on the way have set. Other ranks' datagrams may be marked even if
// this socket does not allow marks on the datagrams that it sends.
void read_marks(int socket, bool v6) {
  set_option(socket, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVTCLASS : IP_RECVTOS, 1);
}

}  // namespace

Result<UdpSocketGrant> open_udp_socket(asio::ip::udp::socket& socket,
                                       const UdpSocketRequest& request) {
  std::error_code error;
  socket.open(request.local.protocol(), error);
  if (!error) socket.non_blocking(true, error);
  if (!error && request.shared)
    socket.set_option(asio::ip::udp::socket::reuse_address(true), error);
  if (!error) socket.bind(request.local, error);
  if (error) {
    const bool is_taken = error == asio::error::address_in_use;
    return Status::error(
        code_without(error.value(), StatusCode::kUnavailable), "UDP socket at %s port %u: %s%s%s",
        request.local.address().to_string().c_str(), unsigned{request.local.port()},
        error.message().c_str(), descriptor_hint(error.value()),
        is_taken
            ? "; ranks of one host need a LEEWAY_PORT each, or a LEEWAY_LOCAL_RANK each, which "
              "is added to it"
            : "");
  }
  const int handle = socket.native_handle();
  forbid_fragments(handle, request.local.address().is_v6());
  read_marks(handle, request.local.address().is_v6());
  UdpSocketGrant grant;
  grant.receive_account_bytes = enlarge(handle, SO_RCVBUFFORCE, SO_RCVBUF, request.buffer_bytes);
  grant.send_account_bytes = enlarge(handle, SO_SNDBUFFORCE, SO_SNDBUF, request.buffer_bytes);
  // Segment size 0 changes nothing, but shows whether the kernel knows the option.
  grant.segmentation = request.segmentation && set_option(handle, SOL_UDP, UDP_SEGMENT, 0);
  grant.coalescing = request.coalescing && set_option(handle, SOL_UDP, UDP_GRO, 1);
  return grant;
}

void allow_marks(asio::ip::udp::socket& socket, bool v6) {
  constexpr int kEct0 = static_cast<int>(Ecn::ect0);
  set_option(socket.native_handle(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS,
             kEct0);
}

std::size_t payload_capacity(std::size_t account_bytes, std::size_t datagram_bytes) {
  // For a datagram that arrives alone the kernel charges a descriptor and a buffer. The buffer
  // holds the datagram and 384 bytes of bookkeeping, and its size is rounded up to a power of two.
  // Some drivers give a page to each frame, so the charge assumes a page at least.
  constexpr std::size_t kAround = 320 + 64;
  constexpr std::size_t kDescriptor = 256;
  constexpr std::size_t kPage = 4096;
  const std::size_t charged =
      std::max(std::bit_ceil(datagram_bytes + kAround), kPage) + kDescriptor;
  return account_bytes / charged * datagram_bytes;
}

}  // namespace leeway::transport
