#include "collective/engine.h"

namespace leeway::collective {

Engine::Engine(const protocol::EndpointConfig& config) : endpoint_(config), link_rates_(config.size, 1.0) {}

void Engine::submit(Instant now, Request& request, bool may_start) {
  const auto& config = endpoint_.config();
  request.status = validate(request.spec, config.self, config.size);
  if (!request.status.ok()) {
    request.done = true;
    return;
  }
  request.sequence = next_sequence_++;
  request.submitted = now;
  if (may_start && queued_.empty() && start(now, request)) return;
  queued_.push_back(&request);
}

bool Engine::start(Instant now, Request& request) {
  if (endpoint_.open_rounds() == limits::kOpenRoundsMax) return false;
  // The operation that became free last is the one whose memory is still in the cache: the list is searched from the
  // front, and only as many are made as were ever open together.
  for (auto& operation : operations_) {
    if (operation->free()) return operation->begin(now, request);
  }
  operations_.push_back(std::make_unique<Operation>(endpoint_, link_rates_));
  return operations_.back()->begin(now, request);
}

void Engine::on_wake(Instant now, bool may_start) {
  endpoint_.on_wake(now);
  while (may_start && !queued_.empty() && start(now, *queued_.front())) queued_.pop_front();
}

void Engine::cancel_all(Instant now, const Status& status) {
  for (Request* request : queued_) {
    request->status = status;
    request->done = true;
  }
  queued_.clear();
  endpoint_.cancel_all(now, status);
}

}  // namespace leeway::collective
