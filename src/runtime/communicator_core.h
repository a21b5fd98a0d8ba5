// What stands behind a Communicator: engine, transport and driver of one rank, and the operations in flight.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "collective/operation_spec.h"
#include "leeway/communicator.h"
#include "runtime/driver.h"
#include "transport/fault/fault_transport.h"

namespace leeway::internal {

// Shared by the caller's Work and, until it is done, the core.
struct WorkState {
  collective::Request request;
  std::atomic<bool> done{false};  // published: request is final and the caller's memory is free
  CommunicatorCore* core = nullptr;  // valid until done
};

class CommunicatorCore {
 public:
  // `faults` is `transport` seen as what it is, or null.
  CommunicatorCore(const Options& options, const protocol::EndpointConfig& config,
                   std::unique_ptr<DatagramTransport> transport, const transport::FaultTransport* faults);
  // Stays until peers have what they may still ask for (bounded), cancels the rest, says good-bye.
  ~CommunicatorCore();

  Rank rank() const { return config_.self; }
  int size() const { return config_.size; }
  const Options& options() const { return options_; }
  const protocol::EndpointConfig& config() const { return config_; }

  // Hears from every peer over the data path, which also measures round trips; kUnavailable naming those it cannot hear.
  Status prove_paths(Duration timeout);

  std::shared_ptr<WorkState> submit(const collective::OperationSpec& spec);
  void nudge() { driver_.nudge(); }
  Result<CollectiveReport> wait(WorkState& work);
  Result<CollectiveReport> run(const collective::OperationSpec& spec) { return wait(*submit(spec)); }

  std::vector<std::pair<std::string, std::uint64_t>> counters();

 private:
  void publish();
  void linger();

  Options options_;
  protocol::EndpointConfig config_;
  const transport::FaultTransport* faults_;
  std::vector<std::shared_ptr<WorkState>> active_;  // touched by the driving thread only
  runtime::Driver driver_;                          // last: its thread uses the rest
};

}  // namespace leeway::internal
