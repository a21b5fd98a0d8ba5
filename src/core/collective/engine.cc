#include "collective/engine.h"

#include <algorithm>
#include <utility>

#include "collective/message_group.h"
#include "protocol/awaited.h"

namespace leeway::collective {

Engine::Engine(const protocol::EndpointConfig& config, std::span<protocol::Path* const> paths,
               MemoryWatcher* watcher)
    : endpoint_(config, paths), watcher_(watcher), history_(config.size), any_source_(endpoint_) {}

Status Engine::check(const OperationSpec& spec) const {
  const auto& config = endpoint_.config();
  const Status status = validate(spec, config.self, config.size);
  return status.ok() ? check_flow_lengths(spec, config) : status;
}

void Engine::submit(Instant now, Request& request, bool may_start) {
  if (request.spec.kind == OperationKind::exchange) return submit_group(now, request, may_start);
  if (const Status& given_up = endpoint_.liveness().given_up(); !given_up.ok())
    return request.finish(given_up, now);
  if (Status fault = check(request.spec); !fault.ok())
    return refuse(now, request, fault, may_start);
  if (has_automatic_codec(request.spec.options) && !request.spec.stands_in) {
    const std::uint64_t number = automatic_.next_number();
    request.automatic_number = number;
    if (automatic_.exchange_due(number)) {
      Request& exchange = automatic_.exchange(number, request.spec.options);
      exchange.place = request.place;
      exchange.spec.whole = request.spec.whole;
      enqueue(now, exchange, may_start);
    }
  }
  enqueue(now, request, may_start);
}

// Ends a request that failed its checks. A refused collective still takes its place in the order,
// and peers are told of the error. Otherwise this rank would stay one call ahead of its peers for
// ever.
void Engine::refuse(Instant now, Request& request, const Status& why, bool may_start) {
  if (!is_collective(request.spec.kind)) return request.finish(why, now);
  request.spec.forfeit = std::make_shared<const Status>(why);
  enqueue(now, request, may_start);
}

// Checks all messages of an exchange before any of them begins.
void Engine::submit_group(Instant now, Request& request, bool may_start) {
  request.group = std::make_shared<MessageGroup>(request.spec);
  MessageGroup& group = *request.group;
  const Rank self = endpoint_.config().self;
  Status status = endpoint_.liveness().given_up();
  if (status.ok()) status = validate(request.spec, self, endpoint_.config().size);
  if (status.ok()) status = group.pair_own(self);
  for (std::size_t i = 0; i < group.messages().size() && status.ok(); ++i) {
    const Status fault = check(group.messages()[i].spec);
    if (fault.ok()) continue;
    status = Status::error(fault.code(), "exchange: message %zu of %zu: %s", i,
                           group.messages().size(), fault.c_str());
  }
  if (!status.ok()) return request.finish(status, now);
  request.sequence = next_sequence_++;
  request.submitted = now;
  group.begin(now, request);
  for (Request& message : group.messages()) {
    if (!group.is_own(message)) enqueue(now, message, may_start);
  }
}

void Engine::enqueue(Instant now, Request& request, bool may_start) {
  request.sequence = next_sequence_;
  request.submitted = now;
  if (request.spec.elsewhere() && request.spec.forfeit == nullptr && !request.spec.stands_in) {
    if (const Status status = agree_on_payload(request); !status.ok())
      request.spec.forfeit = std::make_shared<const Status>(status);
  }
  ++next_sequence_;
  if (point_to_point(request.spec.kind)) {
    if (may_start && queued_messages_.empty()) return start_message(now, request);
    queued_messages_.push_back(&request);
    return;
  }
  if (take_over(now, request)) return;
  if (may_start && queued_.empty() && start(now, request)) return;
  queued_.push_back(&request);
  queued_until_ = std::min(queued_until_, deadline_of(request));
}

// Ends queued requests whose deadlines have passed. A copy of each request stays in the queue in
// the request's place, and fails there as a refused request does.
void Engine::end_overdue(Instant now) {
  std::erase_if(forfeits_, [](const auto& forfeit) { return forfeit->done; });
  if (now < queued_until_) return;
  queued_until_ = Instant::infinite_future();
  for (Request*& queued : queued_) {
    Request& request = *queued;
    if (request.spec.forfeit != nullptr || automatic_.is_exchange(request)) continue;
    if (now < deadline_of(request)) {
      queued_until_ = std::min(queued_until_, deadline_of(request));
      continue;
    }
    const Status overdue =
        protocol::overdue_behind(now, endpoint_.state(), to_string(request.spec.kind),
                                 request.spec.options.delivery.deadline);
    forfeits_.push_back(std::make_unique<Request>(request));
    queued = forfeits_.back().get();
    queued->spec.forfeit = std::make_shared<const Status>(overdue);
    queued->payload.reset();
    request.finish(overdue, now);
  }
}

// Puts the request in place of its stand-in. Returns false if there is no stand-in. A stand-in has
// no memory, so the request may replace it while the transport still reads memory of finished
// operations.
bool Engine::take_over(Instant now, Request& request) {
  if (!request.place) return false;
  for (Request*& queued : queued_) {
    if (!queued->spec.stands_in || queued->place != request.place) continue;
    std::exchange(queued, &request)->finish(Status(), now);
    return true;
  }
  for (const auto& operation : operations_) {
    if (!operation->holds(*request.place)) continue;
    operation->take_over(now, request);
    payloads_open_ += request.payload != nullptr;
    return true;
  }
  return false;
}

// Returns the number that the request's round must get, or nullopt if the next free number will do.
std::optional<std::uint32_t> Engine::number_of(const Request& request) const {
  if (!request.place) return std::nullopt;
  return unplaced_.value_or(endpoint_.rounds().opened_below()) +
         static_cast<std::uint32_t>(*request.place);
}

// Replaces Codec::automatic by the codec that all ranks have agreed on. Returns false until they
// have.
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
  if (endpoint_.rounds().collective_count() == limits::kOpenCollectivesMax ||
      !resolve_codec(request))
    return false;
  if (request.place && !unplaced_) unplaced_ = endpoint_.rounds().opened_below();
  const std::optional<std::uint32_t> number = number_of(request);
  if (number && protocol::after(endpoint_.rounds().opened_below(), *number)) {
    request.finish(Status::error(StatusCode::kInvalidArgument,
                                 "%s: two threads called collectives of one communicator at the "
                                 "same time; their order must be that of all ranks",
                                 to_string(request.spec.kind)),
                   now);
    return true;
  }
  automatic_.on_start(request);
  if (!begin(now, request, number)) return false;
  // AutomaticCodec's exchange has a round number of its own, but shares the place of the call after
  // it. So each exchange puts later round numbers ahead of places by one more.
  if (number && automatic_.is_exchange(request)) ++*unplaced_;
  payloads_open_ += request.payload != nullptr;
  return true;
}

bool Engine::begin(Instant now, Request& request, std::optional<std::uint32_t> number) {
  // The first free operation is reused, because its memory is the most likely to be in the cache.
  // So there are never more objects than operations were open at one time.
  for (auto& operation : operations_) {
    if (operation->free()) return operation->begin(now, request, number);
  }
  operations_.push_back(std::make_unique<Operation>(endpoint_, history_, automatic_, watcher_));
  return operations_.back()->begin(now, request, number);
}

// Tells payload source and sink how the operation is cut, and gets the sink's memory. This happens
// within submit(), before the round has its number, so the number is worked out from the queue.
Status Engine::agree_on_payload(Request& request) {
  const CollectiveOptions& options = request.spec.options;
  OperationPlan plan;
  NoiseMeter meter;
  const schedule::ChunkQueue chunks;
  const std::uint32_t number = number_of(request).value_or(
      endpoint_.rounds().opened_below() + static_cast<std::uint32_t>(queued_.size()));
  plan_halves(request.spec, request.submitted, endpoint_,
              {.number = number,
               .meter = meter,
               .own_chunks = chunks,
               .barrier = nullptr,
               .payload = nullptr},
              plan);
  auto agreement = std::make_shared<PayloadAgreement>();
  *agreement = {options.source, options.sink, layout_of(plan, endpoint_, number), {}};
  if (Status status = options.source->begin(agreement->layout); !status.ok()) return status;
  const Result<MutableByteSpan> landing = options.sink->landing(agreement->layout);
  if (!landing.ok()) return landing.status();
  if (landing->size() < agreement->layout.landing_bytes()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "%s: the payload sink gave %zu bytes to land in; %zu are needed",
                         to_string(request.spec.kind), landing->size(),
                         agreement->layout.landing_bytes());
  }
  agreement->landing = *landing;
  if (!is_empty(request.spec)) request.payload = std::move(agreement);
  return Status();
}

void Engine::ask_payloads(Instant now) {
  payloads_open_ = 0;
  for (const auto& operation : operations_) {
    operation->ask_payload(now);
    payloads_open_ += operation->exchanges();
  }
}

// Posts a message, unless it is a receive that must wait for its sender to be known.
void Engine::start_message(Instant now, Request& request) {
  if (!any_source_.holds(request.spec)) return post_message(now, request);
  any_source_.push(now, request);
  match_any_source(now, request.spec.options.tag);
}

void Engine::match_any_source(Instant now, std::uint32_t tag) {
  any_source_.match(tag, [&](Request& receive) { post_message(now, receive); });
}

void Engine::post_message(Instant now, Request& request) {
  const OperationSpec& spec = request.spec;
  if (!endpoint_.rounds().has_room_for(spec.peer, spec.options.tag)) {
    return request.finish(
        Status::error(StatusCode::kResourceExhausted,
                      "%s: %zu tags have been used with rank %u, which is the limit",
                      to_string(spec.kind), limits::kTagsPerPeerMax, spec.peer),
        now);
  }
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
  if (!queued_.empty()) end_overdue(now);
  while (may_start && !queued_.empty() && start(now, *queued_.front())) queued_.pop_front();
  for (; may_start && !queued_messages_.empty(); queued_messages_.pop_front())
    start_message(now, *queued_messages_.front());
  if (payloads_open_ != 0) ask_payloads(now);
  if (!any_source_.empty()) any_source_.on_wake(now);
  if (!may_start) return;
  endpoint_.tags().take_heard(tags_heard_);
  for (const std::uint32_t tag : tags_heard_) match_any_source(now, tag);
}

Instant Engine::payloads_at() const {
  Instant at = Instant::infinite_future();
  for (const auto& operation : operations_) at = std::min(at, operation->ask_payload_at());
  return at;
}

void Engine::end(Instant now, Request& request, const Status& status,
                 const protocol::Blame& blame) {
  if (request.done) return;
  if (std::erase(queued_, &request) > 0) return request.finish(status, now);
  for (const auto& operation : operations_) {
    if (operation->performs(request)) return operation->end(now, status, blame);
  }
}

void Engine::cancel(Instant now, const Status& status, protocol::Cancelled which) {
  for (auto* queue : {&queued_, &queued_messages_}) {
    for (Request* request : std::exchange(*queue, {})) request->finish(status, now);
  }
  any_source_.cancel_all(now, status);
  endpoint_.cancel(now, status, which);
  if (payloads_open_ == 0) return;
  for (const auto& operation : operations_) operation->cancel_payload(now, status);
}

}  // namespace leeway::collective
