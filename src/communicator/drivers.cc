#include "communicator/drivers.h"

#include <algorithm>
#include <thread>

#include "impairment/fault_plan.h"
#include "transport/fault/fault_transport.h"

namespace leeway::internal {
namespace {

// Data in flight to one peer when nothing else limits it. Enough for 100 Gb/s over 80 us; more only
// moves the queue from the sender to the receiver's socket buffer and out of its cache.
constexpr std::size_t kWindowBytesDefault = 1u << 20;

// In both halves, since a lossy spread needs a lossy delivery. A replica's ledger counts the
// packets of the datagrams' driver.
bool is_exact(const collective::OperationSpec& spec) {
  return spec.kind != collective::OperationKind::replica_broadcast &&
         spec.options.delivery.kind == Delivery::Kind::exact;
}

}  // namespace

Drivers::~Drivers() {
  std::thread closing;
  if (exact_) closing = std::thread([this] { exact_.reset(); });
  datagrams_.reset();
  if (closing.joinable()) closing.join();
}

Driver& Drivers::driver_of(const collective::OperationSpec& spec) {
  return exact_ && is_exact(spec) ? *exact_ : *datagrams_;
}

std::shared_ptr<WorkState> Drivers::start(const collective::OperationSpec& spec) {
  auto work = submit(spec);
  work->driver->nudge();
  return work;
}

Result<CollectiveReport> Drivers::run(const collective::OperationSpec& spec) {
  const auto work = submit(spec);
  return work->driver->wait(*work);
}

Status Drivers::register_memory(ByteSpan memory) {
  Status status = datagrams_->register_memory(memory);
  if (!status.ok() || !exact_) return status;
  status = exact_->register_memory(memory);
  if (!status.ok()) datagrams_->forget_memory(memory);
  return status;
}

void Drivers::forget_memory(ByteSpan memory) {
  datagrams_->forget_memory(memory);
  if (exact_) exact_->forget_memory(memory);
}

Driver::Counters Drivers::counters() {
  Driver::Counters rows;
  datagrams_->add_counters("", rows);
  if (exact_) exact_->add_counters("exact_", rows);
  return rows;
}

std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size) {
  const std::size_t share = receive_buffer_bytes / std::max(1, size - 1);
  return std::min(share, options.window_bytes != 0 ? options.window_bytes : kWindowBytesDefault);
}

Result<std::unique_ptr<Driver>> make_driver(const Options& options, TransportKind kind,
                                            protocol::EndpointConfig config,
                                            std::unique_ptr<DatagramTransport> transport) {
  config.sum_payloads = !transport->limits().intact;
  if (!options.faults.any()) return std::make_unique<Driver>(kind, config, std::move(transport));
  auto plan = impairment::FaultPlan::create(options.faults);
  if (!plan.ok()) return plan.status();
  auto faulty = std::make_unique<transport::FaultTransport>(std::move(transport), config.self,
                                                            std::move(*plan), driving::steady_now);
  const transport::FaultTransport* faults = faulty.get();
  return std::make_unique<Driver>(kind, config, std::move(faulty), faults);
}

}  // namespace leeway::internal
