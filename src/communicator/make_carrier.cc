#include "communicator/make_carrier.h"

#include <algorithm>

#include "impairment/fault_plan.h"
#include "transport/fault/fault_transport.h"

namespace leeway::internal {
namespace {

// Data in flight to one peer when nothing else limits it. Enough for 100 Gb/s over 80 us; more only
// moves the queue from the sender to the receiver's socket buffer and out of its cache.
constexpr std::size_t kWindowBytesDefault = 1u << 20;

}  // namespace

std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size) {
  const std::size_t share = receive_buffer_bytes / std::max(1, size - 1);
  return std::min(share, options.window_bytes != 0 ? options.window_bytes : kWindowBytesDefault);
}

protocol::EndpointConfig endpoint_config(const Options& options, const rendezvous::Group& group,
                                         const rendezvous::Lane& lane) {
  protocol::EndpointConfig config;
  config.self = static_cast<Rank>(options.rank.value_or(0));
  config.size = options.world_size.value_or(1);
  config.epoch = group.epoch;
  config.seed = group.seed;
  config.datagram_bytes = lane.datagram_bytes;
  for (const auto& member : lane.members) {
    config.window_bytes.push_back(window_to(options, member.receive_buffer_bytes, config.size));
  }
  return config;
}

Result<std::unique_ptr<driving::Carrier>> make_carrier(
    const Options& options, TransportKind kind, protocol::EndpointConfig config,
    std::unique_ptr<DatagramTransport> transport) {
  config.sum_payloads = !transport->limits().intact;
  if (!options.faults.any())
    return std::make_unique<driving::Carrier>(kind, config, std::move(transport), nullptr);
  auto plan = impairment::FaultPlan::create(options.faults);
  if (!plan.ok()) return plan.status();
  auto faulty = std::make_unique<transport::FaultTransport>(std::move(transport), config.self,
                                                            std::move(*plan), driving::steady_now);
  const transport::FaultTransport* faults = faulty.get();
  return std::make_unique<driving::Carrier>(kind, config, std::move(faulty), faults);
}

}  // namespace leeway::internal
