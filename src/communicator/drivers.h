// What stands behind a Communicator: the driver of its datagrams and, where ranks have such a lane,
// a second one for exact calls.
#pragma once

#include <memory>

#include "driving/driver.h"
#include "leeway/communicator.h"

namespace leeway::internal {

using driving::Driver;

class Drivers {
 public:
  explicit Drivers(std::unique_ptr<Driver> datagrams) : datagrams_(std::move(datagrams)) {}

  // Closes both at the same time: each may have to wait for peers.
  ~Drivers();

  // Both have the same ranks; the rest is of the datagrams.
  const protocol::EndpointConfig& config() const { return datagrams_->config(); }
  Rank rank() const { return config().self; }
  int size() const { return config().size; }

  Driver& datagrams() { return *datagrams_; }
  const Driver& exact() const { return exact_ ? *exact_ : *datagrams_; }

  // From now on `driver` carries calls that are exact in both halves. All ranks say so at the same
  // place in the order of their calls, or none.
  void use_for_exact(std::unique_ptr<Driver> driver) { exact_ = std::move(driver); }

  std::shared_ptr<WorkState> submit(const collective::OperationSpec& spec) {
    return driver_of(spec).submit(spec);
  }
  // submit() for a caller that does not wait: the background thread takes over at once.
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec);
  Result<CollectiveReport> run(const collective::OperationSpec& spec);

  // With both drivers, or neither.
  Status register_memory(ByteSpan memory);
  void forget_memory(ByteSpan memory);

  // Names of the driver of exact calls begin with "exact_".
  Driver::Counters counters();

 private:
  Driver& driver_of(const collective::OperationSpec& spec);

  std::unique_ptr<Driver> datagrams_;
  std::unique_ptr<Driver> exact_;  // may be null
};

// What may be in flight to a peer whose system queues `receive_buffer_bytes` for all its senders
// together.
std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size);

// A driver over a connected transport, with the faults of the options, if any, between them.
Result<std::unique_ptr<Driver>> make_driver(const Options& options, TransportKind kind,
                                            protocol::EndpointConfig config,
                                            std::unique_ptr<DatagramTransport> transport);

}  // namespace leeway::internal
