// Calls of clients to the core, and the answers that clients get.
#include "endpoint/core_endpoints.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"
#include "collective/message_group.h"

namespace leeway::sim {

void CoreEndpoints::submit(Instant now, std::uint32_t communicator, std::uint32_t rank,
                           const Call& call, Client& client) {
  Seat& seat = communicators_[communicator].seats[rank];
  LEEWAY_ASSERT(seat.client == nullptr && seat.member != nullptr &&
                (call.spec != nullptr || call.kind == CallKind::messages));
  seat.call = call;
  seat.client = &client;
  if (call.spec != nullptr) {
    seat.request = collective::Request();
    seat.request.spec = *call.spec;
  }
  seat.messages = std::vector<collective::Request>(call.spec == nullptr ? call.messages.size() : 0);
  Process& process = processes_[seat.process];
  if (process.dead) return;
  CoreObserver* const observer = communicators_[communicator].observer;
  if (observer != nullptr) observer->on_submit(now, rank, seat.call);
  collective::Engine& engine = seat.member->engine();
  if (call.spec != nullptr) engine.submit(now, seat.request);
  for (std::size_t i = 0; i < seat.messages.size(); ++i) {
    seat.messages[i].spec = call.messages[i];
    engine.submit(now, seat.messages[i]);
  }
  process.node->touch(*seat.member);
  want_pump(now, seat.process);
}

void CoreEndpoints::leave(Instant now, std::uint32_t rank, bool at_once, Client& client) {
  Seat& seat = communicators_[0].seats[rank];
  LEEWAY_ASSERT(seat.client == nullptr);
  seat.leaver = &client;
  protocol::Endpoint& endpoint = seat.member->engine().endpoint();
  at_once ? endpoint.say_goodbye(now) : endpoint.leave(now);
  processes_[rank].node->touch(*seat.member);
  want_pump(now, rank);
}

void CoreEndpoints::close(Instant now, std::uint32_t communicator, std::uint32_t rank,
                          Client& client) {
  Seat& seat = communicators_[communicator].seats[rank];
  LEEWAY_ASSERT(seat.client == nullptr && seat.former == nullptr);
  seat.leaver = &client;
  seat.member->engine().endpoint().leave(now);
  processes_[seat.process].node->touch(*seat.member);
  want_pump(now, seat.process);
}

// Aborts as the library does (src/runtime/driving/channel.cc). Unlike in the library, nothing reads
// the call's buffers afterwards, because datagrams are copied when they leave.
bool CoreEndpoints::abort(Instant now, std::uint32_t communicator, std::uint32_t rank) {
  Seat& seat = communicators_[communicator].seats[rank];
  Process& process = processes_[seat.process];
  LEEWAY_ASSERT(seat.former == nullptr && !process.dead && !process.paused);
  std::vector<const collective::Request*> open;
  for (const collective::Request& request : parts_of(seat)) {
    if (seat.client != nullptr && !request.done) open.push_back(&request);
  }
  seat.aborted = true;
  seat.member->engine().cancel(
      now, Status::error(StatusCode::kCancelled, "rank %u: communicator was aborted", rank));
  const bool cancelled = std::all_of(open.begin(), open.end(), [](const auto* request) {
    return request->done && request->status.code() == StatusCode::kCancelled;
  });
  seat.member->engine().endpoint().say_goodbye(now);
  process.node->touch(*seat.member);
  process.node->on_wake(now);
  if (seat.client != nullptr && is_done(seat)) finish_call(now, seat);
  want_pump(now, seat.process);
  return cancelled && seat.client == nullptr;
}

// Takes the member from its node, which now answers peers in the member's place. Observers may
// still look at the member.
void CoreEndpoints::part(Seat& seat) {
  Process& process = processes_[seat.process];
  seat.former = process.node->part(*seat.member);
  std::erase(process.seats, &seat);
}

// Tells the waiting client that its call is over, or that its rank has left. Also takes a member
// that has aborted from its node.
void CoreEndpoints::settle(Instant now, Seat& seat) {
  if (seat.client != nullptr && is_done(seat)) finish_call(now, seat);
  if (seat.aborted) return part(seat);
  if (seat.leaver == nullptr || !seat.member->engine().endpoint().left()) return;
  Client* const leaver = std::exchange(seat.leaver, nullptr);
  seat.communicator == 0 ? kill(now, seat.process) : part(seat);
  leaver->on_left(now, seat.rank);
}

void CoreEndpoints::finish_call(Instant now, Seat& seat) {
  const CallResult result = result_of(now, seat);
  CoreObserver* const observer = communicators_[seat.communicator].observer;
  if (observer != nullptr) observer->on_done(now, seat.rank, seat.call, result);
  std::exchange(seat.client, nullptr)->on_done(now, seat.rank, result);
}

CallResult CoreEndpoints::result_of(Instant now, const Seat& seat) {
  const std::span<const collective::Request> requests = requests_of(seat);
  CallResult result;
  result.submitted_ns = requests.empty() ? now.ns : requests[0].submitted.ns;
  result.done_ns = now.ns;
  for (const collective::Request& request : requests) {
    if (result.status.ok()) result.status = request.status;
    for (const PeerReport& peer : request.report.peers) {
      result.expected += peer.expected;
      result.arrived += peer.arrived;
      result.arrived_first += peer.arrived - peer.repaired;
    }
    result.bytes_sent += request.report.bytes_sent;
    result.deadline_cut |= request.report.deadline_cut;
  }
  if (seat.call.kind == CallKind::messages) result.messages = parts_of(seat);
  if (seat.call.spec == nullptr) return result;
  result.contributors_mean = seat.request.report.contributors.mean;
  result.contributors_min = seat.request.report.contributors.min;
  result.report = &seat.request.report;
  result.request = &seat.request;
  return result;
}

// Returns the rank's requests to the core.
std::span<const collective::Request> CoreEndpoints::requests_of(const Seat& seat) {
  if (seat.call.spec != nullptr) return {&seat.request, 1};
  return seat.messages;
}

// Like requests_of(), but for an exchange returns the requests of its messages.
std::span<const collective::Request> CoreEndpoints::parts_of(const Seat& seat) {
  if (seat.call.spec != nullptr && seat.request.group != nullptr)
    return seat.request.group->messages();
  return requests_of(seat);
}

bool CoreEndpoints::is_done(const Seat& seat) {
  const auto requests = requests_of(seat);
  return std::all_of(requests.begin(), requests.end(),
                     [](const collective::Request& request) { return request.done; });
}

}  // namespace leeway::sim
