// Datagrams over UCX (UCP active messages). They are reliable and in order. UCX chooses how to
// connect two ranks: shared memory, reliable connections of InfiniBand or RoCE, TCP. Use:
//   auto ucx = UcxTransport::open(options);       // then tell the peers ucx->local_address()
//   ucx->set_peers(addresses_by_rank, own_rank);  // then send and receive
//
// The reliability has a bound: datagrams that a dead or stopped peer does not take are dropped in
// the end.
//
// wait() sleeps for a millisecond at most, because UCX does not wake every receiver. It wakes a
// receiver in shared memory through a socket of the network namespace. Ranks that share memory but
// no network namespace are not woken, and UCX does not say so, so messages between them may be a
// millisecond late. An idle rank's wake-ups take 1 % of a core.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "leeway/transport.h"
#include "transport/ucx/receiver.h"
#include "transport/ucx/sender.h"
#include "transport/ucx/worker.h"
#include "transport/waiter.h"

namespace leeway::transport {

struct UcxOptions {
  std::size_t datagram_bytes = 0;  // largest payload; 0 or more than fits: what fits in one piece
};

class UcxTransport final : public DatagramTransport {
 public:
  // Longest local_address(). If the addresses of a host's devices do not fit, the user names some
  // devices in UCX_NET_DEVICES.
  static constexpr std::size_t kAddressBytesMax = 4096;

  static Result<std::unique_ptr<UcxTransport>> open(const UcxOptions& options);

  ~UcxTransport() override;

  // Returns an opaque address: where peers reach this rank, and which version of UCX it has.
  const std::vector<std::byte>& local_address() const { return local_; }

  // Call it before the first send(). `by_rank` has the local_address() of every rank, including
  // this one, `self`. Refuses damaged addresses and those of another version of UCX, because UCX
  // does not check them.
  Status set_peers(std::span<const std::vector<std::byte>> by_rank, Rank self);

  std::string_view name() const override { return "ucx"; }
  const TransportLimits& limits() const override { return limits_; }
  std::size_t send(std::span<const Train> trains) override;
  std::size_t receive(std::span<Received> out) override;
  void wait(Duration timeout) override;
  void wake() override { waiter_.wake(); }
  TransportCounters counters() const override { return counters_; }

 private:
  UcxTransport() : receiver_(counters_), sender_(receiver_, counters_) {}
  bool keeps_intact(Rank self) const;

  TransportLimits limits_;
  TransportCounters counters_;  // of the receiver and the sender
  UcxReceiver receiver_;
  UcxSender sender_;
  UcxWorker worker_;  // destroyed before the sender, which its callbacks use
  Waiter waiter_;
  std::vector<std::byte> local_;
};

}  // namespace leeway::transport
