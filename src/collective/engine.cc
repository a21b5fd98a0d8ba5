#include "collective/engine.h"

namespace leeway::collective {

Engine::Engine(const protocol::EndpointConfig& config, std::span<protocol::Path* const> paths,
               MemoryWatcher* watcher)
    : endpoint_(config, paths), watcher_(watcher), history_(config.size), automatic_(config.size) {}

void Engine::submit(Instant now, Request& request, bool may_start) {
  const auto& config = endpoint_.config();
  request.status = endpoint_.given_up();
  if (request.status.ok()) request.status = validate(request.spec, config.self, config.size);
  if (request.status.ok()) request.status = check_flow_lengths(request.spec, config);
  if (!request.status.ok()) {
    request.done = true;
    return;
  }
  if (has_automatic_codec(request.spec.options)) {
    const std::uint64_t number = automatic_.next_number();
    request.automatic_number = number;
    if (automatic_.exchange_due(number)) {
      enqueue(now, automatic_.exchange(number, request.spec.options), may_start);
    }
  }
  enqueue(now, request, may_start);
}

void Engine::enqueue(Instant now, Request& request, bool may_start) {
  request.sequence = next_sequence_++;
  request.submitted = now;
  if (point_to_point(request.spec.kind)) {
    if (may_start && queued_messages_.empty()) return start_message(now, request);
    queued_messages_.push_back(&request);
    return;
  }
  if (may_start && queued_.empty() && start(now, request)) return;
  queued_.push_back(&request);
}

// False while the ranks have not agreed what automatic means for this operation.
bool Engine::resolve_codec(Request& request) {
  if (!request.automatic_number) return true;
  if (!automatic_.ready(*request.automatic_number)) return false;
  CollectiveOptions& options = request.spec.options;
  if (!has_automatic_codec(options)) return true;  // an earlier attempt to start found no room
  const CodecOptions choice = automatic_.choose(*request.automatic_number);
  if (options.codec.codec == Codec::automatic) options.codec = choice;
  if (options.spread_codec && options.spread_codec->codec == Codec::automatic)
    options.spread_codec = choice;
  return true;
}

bool Engine::start(Instant now, Request& request) {
  if (endpoint_.open_collectives() == limits::kOpenCollectivesMax || !resolve_codec(request))
    return false;
  automatic_.on_start(request);
  // The operation that became free last is the one whose memory is still in the cache: the list is
  // searched from the front, and only as many are made as were ever open together.
  for (auto& operation : operations_) {
    if (operation->free()) return operation->begin(now, request);
  }
  operations_.push_back(std::make_unique<Operation>(endpoint_, history_, automatic_, watcher_));
  return operations_.back()->begin(now, request);
}

void Engine::start_message(Instant now, Request& request) {
  if (free_messages_.empty()) {
    messages_.push_back(std::make_unique<Message>(endpoint_, watcher_, free_messages_));
    free_messages_.reserve(messages_.capacity());
    free_messages_.push_back(messages_.back().get());
  }
  Message& message = *free_messages_.back();
  free_messages_.pop_back();
  message.begin(now, request);
}

void Engine::on_wake(Instant now, bool may_start) {
  endpoint_.on_wake(now);
  while (may_start && !queued_.empty() && start(now, *queued_.front())) queued_.pop_front();
  for (; may_start && !queued_messages_.empty(); queued_messages_.pop_front())
    start_message(now, *queued_messages_.front());
}

void Engine::cancel_all(Instant now, const Status& status) {
  for (auto* queue : {&queued_, &queued_messages_}) {
    for (Request* request : *queue) {
      request->status = status;
      request->done = true;
    }
    queue->clear();
  }
  endpoint_.cancel_all(now, status);
}

}  // namespace leeway::collective
