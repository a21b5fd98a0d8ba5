#include "transport/udp/udp_transport.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fork.h"
#include "base/limits.h"
#include "transport/train_limits.h"
#include "transport/udp/multicast.h"

namespace leeway::transport {
namespace {

bool filter(int socket, const UdpOptions& options) {
  return options.sealed_tag_base && keep_sealed_only(socket, *options.sealed_tag_base);
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
  if (options.datagram_bytes == 0)
    return path_datagram_bytes(options.bind_address, options.loopback);
  if (options.datagram_bytes >= limits::kDatagramBytesMin &&
      options.datagram_bytes <= limits::kFrameBytesMax) {
    return options.datagram_bytes;
  }
  return Status::error(StatusCode::kInvalidArgument,
                       "datagram size %zu: %zu to %zu bytes are supported", options.datagram_bytes,
                       limits::kDatagramBytesMin, limits::kFrameBytesMax);
}

// Calls sendmmsg() and recvmmsg() without a message. They send and receive nothing, but fail if a
// filter of system calls (seccomp) forbids them.
Status check_calls(int socket) {
  mmsghdr none{};
  const char* refused = nullptr;
  if (::sendmmsg(socket, &none, 0, MSG_DONTWAIT) < 0) refused = "sendmmsg";
  if (refused == nullptr && ::recvmmsg(socket, &none, 0, MSG_DONTWAIT, nullptr) < 0)
    refused = "recvmmsg";
  if (refused == nullptr) return Status();
  return Status::error(StatusCode::kUnsupported,
                       "UDP: the system refuses %s: %s; does a seccomp filter of this container "
                       "forbid it?",
                       refused, std::strerror(errno));
}

}  // namespace

struct UdpTransport::Opened {
  asio::io_context context{1};
  asio::ip::udp::socket socket{context};
  asio::ip::udp::socket group{context};  // opened if a multicast group was joined
  KeptFromChildren socket_kept;
  KeptFromChildren group_kept;
  UdpSocketGrant grant;
  UdpAddress local;
};

Result<std::unique_ptr<UdpTransport>> UdpTransport::open(const UdpOptions& options) {
  const Result<std::size_t> datagram_bytes = datagram_bytes_of(options);
  if (!datagram_bytes.ok()) return datagram_bytes.status();
  auto opened = std::make_unique<Opened>();
  Result<UdpSocketGrant> grant = open_udp_socket(
      opened->socket, {UdpAddress(options.bind_address, options.port), options.socket_buffer_bytes,
                       options.use_gso, options.use_gro});
  if (!grant.ok()) return grant.status();
  opened->socket_kept = KeptFromChildren(opened->socket.native_handle());
  if (Status status = check_calls(opened->socket.native_handle()); !status.ok()) return status;
  std::error_code error;
  opened->grant = *grant;
  opened->local = opened->socket.local_endpoint(error);
  if (error)
    return Status::error(StatusCode::kInternal, "own UDP address: %s", error.message().c_str());
  std::unique_ptr<UdpTransport> transport(
      new UdpTransport(std::move(opened), options, *datagram_bytes));
  const Status waits = transport->waiter_.open(transport->opened_->socket.native_handle());
  if (!waits.ok()) return waits;
  return transport;
}

UdpTransport::UdpTransport(std::unique_ptr<Opened> opened, const UdpOptions& options,
                           std::size_t datagram_bytes)
    : opened_(std::move(opened)),
      options_(options),
      grant_(opened_->grant),
      local_(opened_->local),
      limits_(limits_of(grant_, datagram_bytes)),
      loopback_limits_(limits_),
      sender_(opened_->socket.native_handle(), grant_.segmentation, peers_, counters_),
      receiver_(opened_->socket.native_handle(), grant_.coalescing, datagram_bytes, peers_,
                counters_),
      drops_(opened_->socket.native_handle(), local_.address().is_v6(),
             filter(opened_->socket.native_handle(), options)) {
  loopback_limits_.intact = true;
}

UdpTransport::~UdpTransport() = default;

void UdpTransport::allow_marks() {
  transport::allow_marks(opened_->socket, local_.address().is_v6());
}

Status UdpTransport::set_peers(std::span<const UdpAddress> by_rank) {
  return peers_.assign(by_rank);
}

const TransportLimits& UdpTransport::limits_to(Rank peer) const {
  const bool loops = peers_.knows(peer) && peers_.address_of(peer).address().is_loopback();
  return loops ? loopback_limits_ : limits_;
}

NetworkAddress UdpTransport::address_of(Rank peer) const {
  return network_address(peers_.address_of(peer));
}

NetworkAddress UdpTransport::source_of(const Received& received) const {
  return network_address(receiver_.source_of(received));
}

bool UdpTransport::move(Rank peer, const NetworkAddress& to) {
  const auto address = udp_address(to, local_.protocol());
  if (address) peers_.move(peer, *address);
  return address.has_value();
}

bool UdpTransport::send_to(const NetworkAddress& to, ByteSpan datagram) {
  const auto address = udp_address(to, local_.protocol());
  return address &&
         ::sendto(opened_->socket.native_handle(), datagram.data(), datagram.size(), MSG_DONTWAIT,
                  address->data(), static_cast<socklen_t>(address->size())) >= 0;
}

Status UdpTransport::join_multicast(const UdpAddress& group, Rank self) {
  UdpSocketRequest like;
  like.buffer_bytes = options_.socket_buffer_bytes;
  like.coalescing = grant_.coalescing;
  const auto grant =
      join_multicast_group(opened_->group, opened_->socket, group, options_.bind_address, like);
  if (!grant.ok()) return grant.status();
  const int handle = opened_->group.native_handle();
  opened_->group_kept = KeptFromChildren(handle);
  waiter_.also_watch(handle);
  group_receiver_ = std::make_unique<UdpReceiver>(
      handle, grant->coalescing, limits_.datagram_bytes_max, peers_, counters_, &::recvmmsg, self);
  peers_.set_group(group);
  limits_.multicast = true;
  return {};
}

// Receives from both sockets. Datagrams that one of them lends stay valid until receive() of the
// same socket is called again. The order alternates, so that neither socket starves the other.
std::size_t UdpTransport::receive(std::span<Received> out) {
  if (group_receiver_ == nullptr) return receiver_.receive(out);
  group_first_ = !group_first_;
  UdpReceiver& first = group_first_ ? *group_receiver_ : receiver_;
  UdpReceiver& second = group_first_ ? receiver_ : *group_receiver_;
  const std::size_t filled = first.receive(out);
  return filled + second.receive(out.subspan(filled));
}

void UdpTransport::wait(Duration timeout) {
  if (receiver_.pending() || (group_receiver_ != nullptr && group_receiver_->pending())) return;
  waiter_.wait(timeout, sender_.blocked());
  if (sender_.blocked()) sender_.flush();
}

TransportCounters UdpTransport::counters() const {
  TransportCounters counters = counters_;
  const ReceiveDrops::Counted drops = drops_.count(receiver_.take_backlog());
  counters.kernel_drops = drops.overflows;
  counters.junk = drops.filtered;
  if (group_receiver_ != nullptr) {
    counters.kernel_drops +=
        ReceiveDrops(opened_->group.native_handle(), false, false).count(0).overflows;
  }
  return counters;
}

}  // namespace leeway::transport
