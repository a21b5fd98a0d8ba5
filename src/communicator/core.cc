#include "communicator/core.h"

#include <thread>

namespace leeway::internal {
namespace {

// In both halves, since a lossy spread needs a lossy delivery. A replica's ledger counts the
// packets of the main carrier's datagrams.
bool is_exact(const collective::OperationSpec& spec) {
  return spec.kind != collective::OperationKind::replica_broadcast &&
         spec.options.delivery.kind == Delivery::Kind::exact;
}

}  // namespace

CommunicatorCore::~CommunicatorCore() {
  std::thread closing;
  if (exact_) closing = std::thread([this] { exact_.reset(); });
  main_.reset();
  if (closing.joinable()) closing.join();
}

Carrier& CommunicatorCore::carrier_of(const collective::OperationSpec& spec) {
  return exact_ && is_exact(spec) ? *exact_ : *main_;
}

std::shared_ptr<WorkState> CommunicatorCore::start(const collective::OperationSpec& spec) {
  auto work = submit(spec);
  work->carrier->nudge();
  return work;
}

Result<CollectiveReport> CommunicatorCore::run(const collective::OperationSpec& spec) {
  const auto work = submit(spec);
  return work->carrier->wait(*work);
}

Status CommunicatorCore::register_memory(ByteSpan memory) {
  Status status = main_->register_memory(memory);
  if (!status.ok() || !exact_) return status;
  status = exact_->register_memory(memory);
  if (!status.ok()) main_->forget_memory(memory);
  return status;
}

void CommunicatorCore::forget_memory(ByteSpan memory) {
  main_->forget_memory(memory);
  if (exact_) exact_->forget_memory(memory);
}

Carrier::Counters CommunicatorCore::counters() {
  Carrier::Counters rows;
  main_->add_counters("", rows);
  if (exact_) exact_->add_counters("exact_", rows);
  return rows;
}

}  // namespace leeway::internal
