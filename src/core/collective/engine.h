// Runs all operations of one communicator over one protocol endpoint. It does no I/O, so the
// runtime and the simulator can drive the same class.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "collective/any_source.h"
#include "collective/message.h"
#include "collective/operation.h"
#include "protocol/endpoint.h"

namespace leeway::collective {

class Engine {
 public:
  // `watcher` is told of the memory of operations from which datagrams are gathered; it may be
  // null.
  explicit Engine(const protocol::EndpointConfig& config, MemoryWatcher* watcher = nullptr)
      : Engine(config, {}, watcher) {}
  // `paths`: by rank, paths that this communicator shares with others (protocol/endpoint.h).
  Engine(const protocol::EndpointConfig& config, std::span<protocol::Path* const> paths,
         MemoryWatcher* watcher);

  // Checks the request and starts it. `request` must stay valid until it is done. A collective
  // waits in a queue while limits::kOpenCollectivesMax collectives are open; messages (send/recv)
  // do not wait. A request that fails its checks sends no element. If it is a message, it is done
  // at once. If it is a collective, it takes its place in the order and fails there, and peers are
  // told. If a stand-in holds the request's place, the request replaces it without waiting. While
  // the transport still reads memory of finished operations, the caller must pass may_start =
  // false, here and to on_wake(); requests are then queued.
  void submit(Instant now, Request& request, bool may_start = true);

  // on_datagram(), on_wake() and poll_train(): as in protocol/endpoint.h.
  void on_datagram(Instant now, Rank from, ByteSpan datagram) {
    endpoint_.on_datagram(now, from, datagram);
    if (!queued_.empty() && !endpoint_.liveness().given_up().ok())
      cancel(now, endpoint_.liveness().given_up());
  }
  void on_wake(Instant now, bool may_start = true);
  using Poll = protocol::Endpoint::Poll;
  bool poll_train(Instant now, protocol::TrainBuffer& out, Poll what = Poll::all) {
    return endpoint_.poll_train(now, out, what);
  }
  // Time at which on_wake() is due; infinite future if never.
  Instant wake_at() const {
    const Instant at = std::min({endpoint_.wake_at(), any_source_.wake_at(), queued_until_});
    return payloads_open_ == 0 ? at : std::min(at, payloads_at());
  }

  // Returns true if a request waits to start, or if a receive from any rank waits whose sender is
  // now known.
  bool waits() const {
    const bool matched = !any_source_.empty() && endpoint_.tags().heard();
    return !queued_.empty() || !queued_messages_.empty() || matched;
  }
  // Returns true if no request is open or queued.
  bool idle() const {
    return endpoint_.rounds().idle() && !waits() && any_source_.empty() && payloads_open_ == 0;
  }
  // Fails all requests that are open or queued. With Cancelled::all, peers that still lack data of
  // requests that are done get no more of it.
  void cancel(Instant now, const Status& status,
              protocol::Cancelled which = protocol::Cancelled::all);
  // Ends a collective that was submitted, unless it is done. `status` may be ok only for a
  // stand-in. Peers are told of an error, and of the rank in `blame`.
  void end(Instant now, Request& request, const Status& status, const protocol::Blame& blame = {});

  protocol::Endpoint& endpoint() { return endpoint_; }
  const protocol::Endpoint& endpoint() const { return endpoint_; }

 private:
  void enqueue(Instant now, Request& request, bool may_start);
  bool take_over(Instant now, Request& request);
  void end_overdue(Instant now);
  bool start(Instant now, Request& request);
  bool begin(Instant now, Request& request, std::optional<std::uint32_t> number);
  Status agree_on_payload(Request& request);
  void ask_payloads(Instant now);
  Instant payloads_at() const;
  void start_message(Instant now, Request& request);
  void post_message(Instant now, Request& request);
  void match_any_source(Instant now, std::uint32_t tag);
  Status check(const OperationSpec& spec) const;
  void submit_group(Instant now, Request& request, bool may_start);
  bool resolve_codec(Request& request);
  void refuse(Instant now, Request& request, const Status& why, bool may_start);
  std::optional<std::uint32_t> number_of(const Request& request) const;

  protocol::Endpoint endpoint_;
  MemoryWatcher* const watcher_;
  estimate::LinkHistory history_;
  AutomaticCodec automatic_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::deque<Request*> queued_;                        // collectives
  Instant queued_until_ = Instant::infinite_future();  // no deadline of theirs is earlier
  // Copies of queued requests that ended at their deadlines. They take the requests' places in the
  // order, and fail there.
  std::vector<std::unique_ptr<Request>> forfeits_;
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<Message*> free_messages_;
  std::deque<Request*> queued_messages_;
  AnySource any_source_;
  std::vector<std::uint32_t> tags_heard_;  // used again, so that no memory is allocated
  std::uint64_t next_sequence_ = 0;
  // Round number of the collective whose Request::place is 0. This is the number of collectives
  // that were opened before the first collective with a place, plus the number of AutomaticCodec's
  // exchanges since then.
  std::optional<std::uint32_t> unplaced_;
  std::size_t payloads_open_ = 0;  // operations whose elements are encoded elsewhere
};

}  // namespace leeway::collective
