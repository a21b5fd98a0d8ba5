// One transport of a communicator with all that runs over it: engine, driver, and the operations in
// flight. A communicator has one, or a second one for exact calls.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/operation_spec.h"
#include "driving/driver.h"
#include "leeway/options.h"
#include "transport/fault/fault_transport.h"

namespace leeway::driving {
class Carrier;
}  // namespace leeway::driving

namespace leeway::internal {

// Shared by the caller's Work and, until it is done, the carrier.
struct WorkState {
  collective::Request request;
  std::atomic<bool> done{false};  // published: request is final and the caller's memory is free
  driving::Carrier* carrier = nullptr;  // valid until done
};

}  // namespace leeway::internal

namespace leeway::driving {

using internal::WorkState;

class Carrier {
 public:
  using Counters = std::vector<std::pair<std::string, std::uint64_t>>;

  // `faults` is `transport` seen as what it is, or null.
  Carrier(TransportKind kind, const protocol::EndpointConfig& config,
          std::unique_ptr<DatagramTransport> transport, const transport::FaultTransport* faults);
  // Lets operations end for a while, cancels the rest, and leaves (protocol/endpoint_leave.cc): in
  // a few time-outs where peers answer, in some seconds where one is dead.
  ~Carrier();

  TransportKind kind() const { return kind_; }
  const protocol::EndpointConfig& config() const { return config_; }

  // Hears from every peer over the data path, which also measures round trips; kUnavailable naming
  // those it cannot hear.
  Status prove_paths(Duration timeout);

  // After prove_paths(), where the transport has multicast: the ranks that do not report ours,
  // asked for up to a fifth of a second.
  std::vector<Rank> deaf_to_multicast();

  std::shared_ptr<WorkState> submit(const collective::OperationSpec& spec);
  void nudge() { driver_.nudge(); }
  Result<CollectiveReport> wait(WorkState& work);

  // As DatagramTransport's; any thread.
  Status register_memory(ByteSpan memory);
  void forget_memory(ByteSpan memory);

  // One row a name, `prefix` before each.
  void add_counters(const std::string& prefix, Counters& rows);

 private:
  void probe_all();
  void publish();
  void leave();
  Duration slowest_timeout();

  const TransportKind kind_;
  const protocol::EndpointConfig config_;
  const transport::FaultTransport* const faults_;
  std::vector<std::shared_ptr<WorkState>> active_;  // touched by the driving thread only
  Driver driver_;                                   // last: its thread uses the rest
};

}  // namespace leeway::driving
