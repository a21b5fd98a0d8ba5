// A transport between opening and use: what the rendezvous is told about it, and how it is told its
// peers. One file for each transport makes them; those that this build is without say what they
// need.
#pragma once

#include <asio/ip/address.hpp>
#include <memory>
#include <string>

#include "leeway/options.h"
#include "leeway/transport.h"
#include "rendezvous/bootstrap.h"

namespace leeway::rendezvous {

class OpenedTransport {
 public:
  virtual ~OpenedTransport() = default;

  // Where peers reach this rank.
  virtual Lane::Member place() const = 0;
  virtual const TransportLimits& limits() const = 0;

  // Tells it where all ranks are. Once, before take().
  virtual Status connect(const Lane& lane, Rank self) = 0;

  // After connect(), on all ranks at the same time: that each rank is woken from its sleep by every
  // other (transport/ucx/wake_proof.h). At once where sleeping and receiving use the same
  // descriptor. An error is every rank's, and names two ranks.
  virtual Status prove_wakeups(Duration timeout) = 0;

  // Between connect() and take(). An error: trains to kEveryRank are not taken, and the text says
  // why.
  virtual Status join_multicast(const asio::ip::address& group, std::uint16_t port) = 0;

  // After connect(): whether every other rank is reached by more than TCP can do; `way` says how.
  virtual bool better_than_tcp(std::string& way) const = 0;

  // Once, at the end.
  virtual std::unique_ptr<DatagramTransport> take() = 0;
};

// `address` is this host's towards the others.
Result<std::unique_ptr<OpenedTransport>> open_udp(const Options& options,
                                                  const asio::ip::address& address);
Result<std::unique_ptr<OpenedTransport>> open_verbs(const Options& options,
                                                    const asio::ip::address& address);
Result<std::unique_ptr<OpenedTransport>> open_ucx(const Options& options,
                                                  const asio::ip::address& address);

}  // namespace leeway::rendezvous
