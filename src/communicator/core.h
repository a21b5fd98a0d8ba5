// What stands behind a Communicator: what carries its operations, and which of two carries which.
#pragma once

#include <memory>

#include "driving/carrier.h"
#include "leeway/communicator.h"

namespace leeway::internal {

using driving::Carrier;

class CommunicatorCore {
 public:
  CommunicatorCore(const Options& options, std::unique_ptr<Carrier> carrier)
      : options_(options), main_(std::move(carrier)) {}

  // Closes both carriers at the same time: each may have to wait for peers.
  ~CommunicatorCore();

  Rank rank() const { return config().self; }
  int size() const { return config().size; }
  const Options& options() const { return options_; }
  const protocol::EndpointConfig& config() const { return main_->config(); }
  Carrier& main() { return *main_; }

  TransportKind transport() const { return main_->kind(); }
  TransportKind exact_transport() const { return exact_ ? exact_->kind() : main_->kind(); }

  // From now on exact calls go over `carrier`. All ranks say so at the same place in the order of
  // their calls, or none.
  void use_for_exact(std::unique_ptr<Carrier> carrier) { exact_ = std::move(carrier); }

  std::shared_ptr<WorkState> submit(const collective::OperationSpec& spec) {
    return carrier_of(spec).submit(spec);
  }
  // submit() for a caller that does not wait: the background thread takes over at once.
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec);
  Result<CollectiveReport> run(const collective::OperationSpec& spec);

  // With both carriers, or neither.
  Status register_memory(ByteSpan memory);
  void forget_memory(ByteSpan memory);

  // Those of the carrier of exact calls begin with "exact_".
  Carrier::Counters counters();

 private:
  Carrier& carrier_of(const collective::OperationSpec& spec);

  Options options_;
  std::unique_ptr<Carrier> main_;
  std::unique_ptr<Carrier> exact_;  // may be null
};

}  // namespace leeway::internal
