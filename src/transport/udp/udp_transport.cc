#include "transport/udp/udp_transport.h"

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace leeway::transport {
namespace {

// Datagrams that the kernel dropped because the socket's buffer was full. Asked for when somebody wants to know;
// SO_RXQ_OVFL would attach the same number to every message received.
std::uint64_t queue_drops(int socket) {
  std::uint32_t memory[SK_MEMINFO_VARS] = {};
  socklen_t bytes = sizeof(memory);
  if (getsockopt(socket, SOL_SOCKET, SO_MEMINFO, memory, &bytes) != 0) return 0;
  return memory[SK_MEMINFO_DROPS];
}

TransportLimits limits_of(const UdpSocketGrant& grant, std::size_t datagram_bytes) {
  TransportLimits limits;
  limits.datagram_bytes_max = datagram_bytes;
  limits.train_bytes_max = kTrainBytesMax;
  limits.train_datagrams_max = kTrainDatagramsMax;
  limits.train_slices_max = kTrainSlicesMax;
  limits.receive_buffer_bytes = payload_capacity(grant.receive_account_bytes, datagram_bytes);
  return limits;
}

Result<std::size_t> datagram_bytes_of(const UdpOptions& options) {
  if (options.datagram_bytes == 0) return path_datagram_bytes(options.bind_address);
  if (options.datagram_bytes >= limits::kDatagramBytesMin && options.datagram_bytes <= limits::kDatagramBytesMax) {
    return options.datagram_bytes;
  }
  return Status::error(StatusCode::kInvalidArgument, "datagram size %zu: %zu to %zu bytes are supported",
                       options.datagram_bytes, limits::kDatagramBytesMin, limits::kDatagramBytesMax);
}

}  // namespace

struct UdpTransport::Opened {
  asio::io_context context{1};
  asio::ip::udp::socket socket{context};
  UdpSocketGrant grant;
  UdpAddress local;
};

Result<std::unique_ptr<UdpTransport>> UdpTransport::open(const UdpOptions& options) {
  const Result<std::size_t> datagram_bytes = datagram_bytes_of(options);
  if (!datagram_bytes.ok()) return datagram_bytes.status();
  auto opened = std::make_unique<Opened>();
  Result<UdpSocketGrant> grant =
      open_udp_socket(opened->socket, {UdpAddress(options.bind_address, options.port), options.socket_buffer_bytes,
                                       options.use_gso, options.use_gro});
  if (!grant.ok()) return grant.status();
  std::error_code error;
  opened->grant = *grant;
  opened->local = opened->socket.local_endpoint(error);
  if (error) return Status::error(StatusCode::kInternal, "own UDP address: %s", error.message().c_str());
  std::unique_ptr<UdpTransport> transport(new UdpTransport(std::move(opened), *datagram_bytes));
  const Status waits = transport->waiter_.open(transport->opened_->socket.native_handle());
  if (!waits.ok()) return waits;
  return transport;
}

UdpTransport::UdpTransport(std::unique_ptr<Opened> opened, std::size_t datagram_bytes)
    : opened_(std::move(opened)),
      grant_(opened_->grant),
      local_(opened_->local),
      limits_(limits_of(grant_, datagram_bytes)),
      sender_(opened_->socket.native_handle(), grant_.segmentation, peers_),
      receiver_(opened_->socket.native_handle(), grant_.coalescing, datagram_bytes, peers_) {}

UdpTransport::~UdpTransport() = default;

Status UdpTransport::set_peers(std::span<const UdpAddress> by_rank) { return peers_.assign(by_rank); }

void UdpTransport::wait(Duration timeout) {
  if (receiver_.pending()) return;
  waiter_.wait(timeout, sender_.blocked());
  if (sender_.blocked()) sender_.flush();
}

TransportCounters UdpTransport::counters() const {
  TransportCounters counters;
  sender_.add_to(counters);
  receiver_.add_to(counters);
  counters.kernel_drops = queue_drops(opened_->socket.native_handle());
  return counters;
}

}  // namespace leeway::transport
