// Datagrams over one InfiniBand or RoCE queue pair of the unreliable-datagram kind (UD). Linux.
//
//   auto verbs = VerbsTransport::open({.bind_address = ...});  // an address that an RDMA port has
//   verbs->set_peers(addresses_by_rank);                       // what local_address() said on each
//   verbs->join_multicast(group);                              // if wanted
// and then send and receive. Datagrams in memory that register_memory() knows are sent from where
// they lie; others are copied first. When the device is removed, status() says so, and everything
// the device had is let go at once, so that its driver can finish.
#pragma once

#include <asio/ip/address.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "leeway/transport.h"
#include "transport/verbs/device.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/peers.h"
#include "transport/verbs/receiver.h"
#include "transport/verbs/sender.h"
#include "transport/waiter.h"

namespace leeway::transport {

struct VerbsOptions {
  asio::ip::address bind_address;  // address of an RDMA port's interface
  std::size_t datagram_bytes = 0;  // largest payload, or 0 for the port's MTU
  // Payload of the receive ring, as far as the device allows. Together with the send buffer it fits
  // into the 8 MiB that a process may usually lock into memory.
  std::size_t receive_bytes = 4u << 20;
};

class VerbsTransport final : public DatagramTransport {
 public:
  // Returns kUnavailable or kResourceExhausted with what is missing and the remedy, and
  // kInvalidArgument for a datagram size that Leeway (limits.h) or the port does not carry.
  static Result<std::unique_ptr<VerbsTransport>> open(const VerbsOptions& options);

  ~VerbsTransport() override;

  // Returns kVerbsAddressBytes to be given to the other ranks.
  std::vector<std::byte> local_address() const { return encode(own_); }
  const VerbsPort& port() const { return device_->port(); }

  // Call it once, before the first send(). `by_rank` has every rank's address, including this
  // rank's. The addresses are not trusted. The call takes as long as the network needs to resolve
  // the peers' addresses.
  Status set_peers(std::span<const std::vector<std::byte>> by_rank);

  // Call it after set_peers(). From then on this rank receives datagrams to the group, and sends
  // trains to kEveryRank there. Waits for the fabric's answer, at most five seconds. After an error
  // unicast works as before.
  Status join_multicast(const asio::ip::address& group);

  std::string_view name() const override { return "verbs"; }
  const TransportLimits& limits() const override { return limits_; }
  Status register_memory(ByteSpan memory) override;
  void forget_memory(ByteSpan memory) override;
  std::size_t send(std::span<const Train> trains) override;
  std::size_t borrowed() override;
  std::size_t receive(std::span<Received> out) override;
  void wait(Duration timeout) override;
  void wake() override { waiter_.wake(); }
  TransportCounters counters() const override { return counters_; }
  const Status& status() const override { return status_; }

 private:
  explicit VerbsTransport(std::unique_ptr<VerbsDevice> device);
  Status start(std::size_t datagram_bytes);
  bool ask_for_completions();
  void look_for_failure();
  void let_go();

  std::unique_ptr<VerbsDevice> device_;
  const VerbsAddress own_;
  TransportLimits limits_;
  Status status_;
  TransportCounters counters_;

  Regions regions_;
  std::optional<Arena> send_slots_;
  std::optional<Arena> receive_slots_;
  std::vector<AddressHandle> routes_;
  VerbsPeers peers_;
  std::optional<VerbsSender> sender_;
  std::optional<VerbsReceiver> receiver_;
  Waiter waiter_;

  bool asked_receive_ = false;  // the device will report the next completion
  bool asked_send_ = false;
  unsigned receives_ = 0;
};

}  // namespace leeway::transport
