// Datagrams over one unconnected UDP socket. Linux.
//
// Asio opens the socket and handles addresses. The data path uses its handle with sendmmsg() and
// recvmmsg() directly, with segmentation offload (UDP_SEGMENT, UDP_GRO) where the kernel has it.
// Use:
//   auto udp = UdpTransport::open(options);  // then tell the peers udp->local_address()
//   udp->set_peers(addresses_by_rank);       // then send and receive
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/udp.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "leeway/transport.h"
#include "transport/udp/address.h"
#include "transport/udp/filter.h"
#include "transport/udp/peer_table.h"
#include "transport/udp/receiver.h"
#include "transport/udp/sender.h"
#include "transport/udp/socket.h"
#include "transport/waiter.h"
#include "transport/whereabouts.h"

namespace leeway::transport {

struct UdpOptions {
  asio::ip::address bind_address = asio::ip::address_v4::loopback();
  std::uint16_t port = 0;  // for 0 the kernel chooses one
  // Largest payload in bytes. With 0 it is the largest for the interface of bind_address
  // (path_datagram_bytes).
  std::size_t datagram_bytes = 0;
  Loopback loopback = Loopback::network;       // as path_datagram_bytes
  std::size_t socket_buffer_bytes = 8u << 20;  // per direction, as far as the kernel allows
  bool use_gso = true;                         // UDP_SEGMENT for sending
  bool use_gro = true;                         // UDP_GRO for receiving
  // If set, only sealed datagrams with tags of this base come in (filter.h)
  std::optional<std::uint32_t> sealed_tag_base;
};

class UdpTransport final : public DatagramTransport, public Whereabouts {
 public:
  static Result<std::unique_ptr<UdpTransport>> open(const UdpOptions& options);

  ~UdpTransport() override;

  // The address where peers reach this rank. If the bind address is unspecified, only the port has
  // a meaning.
  const UdpAddress& local_address() const { return local_; }

  // Sends datagrams with ECT(0) from now on, so queues may mark them instead of dropping them. Only
  // for senders that slow down for marks. Any thread.
  void allow_marks();

  // Call it before the first send(). `by_rank` has one address for every rank, including this one.
  Status set_peers(std::span<const UdpAddress> by_rank);

  // Like PeerTable::meet(), for a rank that meets its peers one by one.
  Status meet_peer(Rank peer, const UdpAddress& address) { return peers_.meet(peer, address); }
  Rank peers() const { return peers_.count(); }

  // Whereabouts
  void show_strangers() override { receiver_.show_strangers(); }
  NetworkAddress address_of(Rank peer) const override;
  NetworkAddress source_of(const Received& received) const override;
  bool move(Rank peer, const NetworkAddress& to) override;
  bool send_to(const NetworkAddress& to, ByteSpan datagram) override;
  SendRefusals refusals_to(Rank peer) const override { return sender_.refusals_to(peer); }
  SendRefusals last_refusals() const override { return sender_.last_refusals(); }
  std::optional<LengthRefusal> take_refusal() override { return sender_.take_refusal(); }
  NetworkAddress last_stranger() const override {
    return network_address(receiver_.last_stranger());
  }

  // From now on receives datagrams to `group`, and sends trains to kEveryRank there. `group` is an
  // address and a port, the same on all ranks; `self` is this rank. Call it before the first
  // send(). Success does not mean that the network carries the group to any other rank. Errors name
  // the group.
  Status join_multicast(const UdpAddress& group, Rank self);

  // Returns true if trains go out as one message, except to peers whose route cannot segment.
  bool segmentation() const { return sender_.segmentation(); }

  std::string_view name() const override { return "udp"; }
  const TransportLimits& limits() const override { return limits_; }
  // Peers at loopback addresses have other limits: datagrams between them stay in the host's
  // memory, so they never arrive damaged.
  const TransportLimits& limits_to(Rank peer) const override;
  std::size_t send(std::span<const Train> trains) override { return sender_.send(trains); }
  std::size_t receive(std::span<Received> out) override;
  void wait(Duration timeout) override;
  void wake() override { waiter_.wake(); }
  TransportCounters counters() const override;

 private:
  struct Opened;
  UdpTransport(std::unique_ptr<Opened> opened, const UdpOptions& options,
               std::size_t datagram_bytes);

  std::unique_ptr<Opened> opened_;  // io_context and sockets: they cannot move, and go last
  const UdpOptions options_;
  const UdpSocketGrant grant_;
  const UdpAddress local_;
  TransportLimits limits_;
  TransportLimits loopback_limits_;
  PeerTable peers_;
  TransportCounters counters_;  // of the sender and the receivers
  UdpSender sender_;
  mutable UdpReceiver receiver_;  // counters() takes its backlog
  mutable ReceiveDrops drops_;
  std::unique_ptr<UdpReceiver> group_receiver_;  // present if a multicast group was joined
  // The last receive() read the group's socket first; the next one reads it second.
  bool group_first_ = false;
  Waiter waiter_;
};

}  // namespace leeway::transport
