#include "rendezvous/store_server.h"

#include <algorithm>
#include <utility>

#include "base/philox.h"

namespace leeway::rendezvous {
namespace {

constexpr const char* kTooManyRequests = "too many requests that wait";

}  // namespace

void StoreServer::on_accept(Instant now, Id id, std::uint64_t network) {
  now_ = now;
  ++counters_.accepted;
  make_room_for_stranger(network);
  auto& strangers = phases_[static_cast<std::size_t>(Phase::stranger)];
  if (connections_.size() >= limits_.connections_max) {
    const auto& idle = in_phase(Phase::idle);
    if (idle.empty()) {
      closings_.push_back({id, "too many connections"});
      ++counters_.strangers;
      return;
    }
    close(connections_.find(idle.front()), "too many connections, and this one idle longest");
  }
  Connection& connection = connections_[id];
  connection.place = strangers.insert(strangers.end(), id);
  connection.since = now;
  connection.network = network;
}

void StoreServer::make_room_for_stranger(std::uint64_t network) {
  const auto& strangers = in_phase(Phase::stranger);
  if (network != 0 && strangers.size() >= limits_.half_open_network_max) {
    std::vector<Id> neighbours;
    for (const Id id : strangers) {
      if (connections_.at(id).network == network) neighbours.push_back(id);
    }
    if (neighbours.size() >= limits_.half_open_network_max)
      close_one_of(neighbours, "too many connections of its network that say nothing");
  }
  if (strangers.size() >= limits_.half_open_max)
    close_one_of({strangers.begin(), strangers.end()}, "too many connections that say nothing");
}

void StoreServer::close_one_of(const std::vector<Id>& strangers, const char* reason) {
  const auto draw = static_cast<std::uint32_t>(counters_.accepted);
  const std::uint64_t drawn = keyed_hash(seed_, draw, 0, 0, 0);
  close(connections_.find(strangers[drawn % strangers.size()]), reason);
}

void StoreServer::on_bytes(Instant now, Id id, ByteSpan received) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;  // closed while the bytes were on their way
  now_ = now;
  Connection& connection = at->second;
  buffered_ -= connection.reader.buffered();
  const bool ours = connection.reader.feed_requests(
      received, [&](const StoreRequest& request) { serve(id, connection, request); });
  buffered_ += connection.reader.buffered();
  if (!ours) return close(at, "not a message of ours");
  if (connection.doomed != nullptr) return close(at, connection.doomed);
  if (bytes() > limits_.bytes_max) return close(at, "no room for its message");
  settle(id, connection);
}

void StoreServer::on_closed(Id id) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  if (at->second.phase == Phase::stranger) ++counters_.strangers;
  forget(at);
}

void StoreServer::on_sent(Instant now, Id id, std::size_t answers) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  now_ = now;
  Connection& connection = at->second;
  const std::size_t sent = std::min(answers, connection.unsent);
  connection.unsent -= sent;
  requests_ -= sent;
  if (connection.phase == Phase::sending && connection.unsent > 0)
    return move_to(id, connection, Phase::sending);  // its time begins anew
  settle(id, connection);
}

void StoreServer::on_wake(Instant now) {
  const auto late = [&](Phase phase, const char* reason) {
    const auto& ids = in_phase(phase);
    while (!ids.empty()) {
      const auto at = connections_.find(ids.front());
      if (now - at->second.since < patience_in(phase)) return;
      close(at, reason);
    }
  };
  late(Phase::stranger, "no greeting in time");
  late(Phase::receiving, "its message never became complete");
  late(Phase::sending, "it does not read its answers");
  late(Phase::idle, "idle");
}

std::optional<Instant> StoreServer::next_wake() const {
  std::optional<Instant> first;
  for (const Phase phase : {Phase::stranger, Phase::receiving, Phase::sending, Phase::idle}) {
    const auto& ids = in_phase(phase);
    if (ids.empty()) continue;
    const Instant end = connections_.at(ids.front()).since + patience_in(phase);
    if (!first || end < *first) first = end;
  }
  return first;
}

bool StoreServer::put_here(Instant now, std::string_view key, ByteSpan value,
                           std::uint32_t readers) {
  now_ = now;
  return put_into_table(key, value, 0, readers);
}

std::vector<StoreServer::Answer> StoreServer::poll_answers() {
  return std::exchange(answers_, {});
}

std::vector<StoreServer::Closing> StoreServer::poll_closings() {
  return std::exchange(closings_, {});
}

void StoreServer::serve(Id id, Connection& connection, const StoreRequest& request) {
  if (connection.doomed != nullptr) return;
  if (connection.waiting.size() + connection.unsent >= limits_.requests_max)
    connection.doomed = kTooManyRequests;
  if (requests_ >= limits_.all_requests_max) make_room_for_request(id);
  if (connection.doomed != nullptr) return;
  switch (request.operation) {
    case StoreOperation::put:
      return put(id, connection, request);
    case StoreOperation::get:
    case StoreOperation::look:
      return get(id, connection, request);
    case StoreOperation::erase:
      table_.erase(request.key);
      return answer(id, connection, StoreOutcome::done, request.number);
    case StoreOperation::cancel:
      break;
  }
  const auto waiting = connection.waiting.find(request.number);
  if (waiting == connection.waiting.end()) return;  // the answer is on its way
  table_.cancel(waiting->second, {id, request.number});
  connection.waiting.erase(waiting);
  --requests_;
}

// Closes the connection with the most requests. That need not be `id`, whose new request needs the
// room, because `id` may have only this one.
void StoreServer::make_room_for_request(Id id) {
  const auto requests = [](const auto& one) {
    return one.second.waiting.size() + one.second.unsent;
  };
  const auto most =
      std::max_element(connections_.begin(), connections_.end(),
                       [&](const auto& a, const auto& b) { return requests(a) < requests(b); });
  if (most->first == id) {
    most->second.doomed = kTooManyRequests;  // closed after it was served
  } else {
    close(most, kTooManyRequests);
  }
}

void StoreServer::put(Id id, Connection& connection, const StoreRequest& request) {
  const bool room = put_into_table(request.key, request.value, id, request.readers);
  if (!room) ++counters_.full;
  if (room && request.with_connection) connection.announced.emplace(request.key);
  if (!room || !request.quiet)
    answer(id, connection, room ? StoreOutcome::done : StoreOutcome::full, request.number);
}

void StoreServer::get(Id id, Connection& connection, const StoreRequest& request) {
  if (StoreTable::Value value = table_.read(request.key))
    return answer(id, connection, StoreOutcome::found, request.number, std::move(value));
  if (request.operation == StoreOperation::look)
    return answer(id, connection, StoreOutcome::absent, request.number);
  if (!connection.waiting.emplace(request.number, request.key).second) {
    connection.doomed = "two requests of one number";
    return;
  }
  ++requests_;
  table_.wait(request.key, {id, request.number});
}

void StoreServer::answer(Id id, Connection& connection, StoreOutcome outcome, std::uint32_t number,
                         StoreTable::Value value) {
  Answer answer{id, {}, std::move(value)};
  if (!std::exchange(connection.greeted, true))
    answer.head.assign(kGreeting.begin(), kGreeting.end());
  const auto header = answer_header(outcome, number, answer.value ? answer.value->size() : 0);
  answer.head.insert(answer.head.end(), header.begin(), header.end());
  answers_.push_back(std::move(answer));
  ++connection.unsent;
  ++requests_;
}

// Puts a value, and answers the gets that waited for it. Each such get moves from waiting to
// unsent, so requests_ is the same before and after.
bool StoreServer::put_into_table(std::string_view key, ByteSpan value, Id id,
                                 std::uint32_t readers) {
  std::vector<StoreTable::Woken> woken;
  if (!table_.make_room(buffered_ + StoreTable::cost_of(key, value)) ||
      !table_.put(key, value, id, readers, woken))
    return false;
  for (const StoreTable::Woken& one : woken) {
    const auto at = connections_.find(one.waiter.owner);
    if (at == connections_.end() || at->second.waiting.erase(one.waiter.request) == 0) continue;
    --requests_;
    answer(at->first, at->second, StoreOutcome::found, one.waiter.request, one.value);
    settle(at->first, at->second);
  }
  return true;
}

// Moves a connection to the phase that fits its state. Call it after every change of the state. The
// time limit of an incomplete message counts from its first byte.
void StoreServer::settle(Id id, Connection& connection) {
  if (!connection.reader.is_greeted()) return;
  const bool has_business = !connection.waiting.empty() || !connection.announced.empty();
  Phase phase = has_business ? Phase::busy : Phase::idle;
  if (connection.unsent > 0) phase = Phase::sending;
  if (connection.reader.buffered() > 0) phase = Phase::receiving;
  if (phase != connection.phase || phase == Phase::idle) move_to(id, connection, phase);
}

void StoreServer::move_to(Id id, Connection& connection, Phase phase) {
  phases_[static_cast<std::size_t>(connection.phase)].erase(connection.place);
  auto& ids = phases_[static_cast<std::size_t>(phase)];
  connection.phase = phase;
  connection.place = ids.insert(ids.end(), id);
  connection.since = now_;
}

void StoreServer::close(Connections::iterator at, const char* reason) {
  closings_.push_back({at->first, reason});
  ++(at->second.phase == Phase::stranger ? counters_.strangers : counters_.refused);
  forget(at);
}

void StoreServer::forget(Connections::iterator at) {
  Connection& connection = at->second;
  for (const auto& [number, key] : connection.waiting) table_.cancel(key, {at->first, number});
  for (const std::string& key : connection.announced) table_.erase_of(key, at->first);
  requests_ -= connection.waiting.size() + connection.unsent;
  buffered_ -= connection.reader.buffered();
  phases_[static_cast<std::size_t>(connection.phase)].erase(connection.place);
  connections_.erase(at);
}

Duration StoreServer::patience_in(Phase phase) const {
  switch (phase) {
    case Phase::stranger:
      return limits_.hello_timeout;
    case Phase::receiving:
    case Phase::sending:
      return limits_.frame_timeout;
    case Phase::idle:
      return limits_.idle_timeout;
    case Phase::busy:
      break;
  }
  return Duration::max();
}

}  // namespace leeway::rendezvous
