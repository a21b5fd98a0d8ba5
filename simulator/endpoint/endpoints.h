// Endpoints move tensors between the ranks over the network. There are two kinds: the shipping core
// (core_endpoints.h), and a ring over TCP, which recovers every loss (tcp_ring.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "collective/request.h"
#include "engine/event_queue.h"
#include "leeway/report.h"
#include "leeway/status.h"

namespace leeway::sim {

// One call of a rank: a collective, a half of a replica step, or messages that are posted together.
enum class CallKind : std::uint8_t {
  all_reduce = 0,
  reduce_scatter = 1,
  all_gather = 2,
  broadcast = 3,
  all_to_all = 4,
  replica_reduce = 5,     // gradients to the owners of their shards
  replica_broadcast = 6,  // the owners' parameters to all
  gather = 7,
  scatter = 8,
  reduce = 9,
  barrier = 10,
  messages = 11,  // several sends and receives at once
  // Ranks exchange colors and keys, from which further communicators are made.
  split = 12,
};
const char* to_string(CallKind kind);

struct Call {
  CallKind kind = CallKind::all_reduce;
  std::uint32_t round = 0;
  std::uint64_t bytes = 0;  // bytes of the whole float32 tensor
  // The operation for the core; must be valid until the call is done. It is null for a ring, which
  // needs only sizes, and for messages that are separate operations.
  const collective::OperationSpec* spec = nullptr;
  // Uneven blocks: number of elements that each rank sends to each rank, by sender, then by
  // receiver. Empty if blocks are even.
  std::span<const std::size_t> lengths;
  // The messages of a call of kind messages, which are posted at once in this order. If `spec` is
  // an exchange, these are the messages that it consists of.
  std::span<const collective::OperationSpec> messages;
};

// Outcome of a call, in terms that fit all kinds of endpoints. Counts are of data packets.
struct CallResult {
  Status status;
  std::int64_t submitted_ns = 0;
  std::int64_t done_ns = 0;
  std::uint64_t expected = 0;  // packets that peers were to send this rank
  // Expected packets that arrived before settling, repaired ones included.
  std::uint64_t arrived = 0;
  std::uint64_t arrived_first = 0;  // without repaired ones
  std::uint64_t bytes_sent = 0;     // datagram payloads, headers and repairs included
  double contributors_mean =
      // Mean number of contributors to a packet of the rank's shard, the rank included; 0 without a
      // reduce half.
      0;
  std::uint32_t contributors_min = 0;
  bool deadline_cut = false;
  // The core's report, valid during on_done only. For messages it is set only if they are an
  // exchange.
  const CollectiveReport* report = nullptr;
  // Requests of a call of kind messages; valid during on_done only.
  std::span<const collective::Request> messages;
  const collective::Request* request = nullptr;  // the request that `report` belongs to
};

// Returns true if the call has a result to check. An exact spread that stays incomplete is an error
// with a result: zeros stand for what did not come.
inline bool has_result(const CallResult& result) {
  return result.status.ok() || (result.report != nullptr && !result.report->complete);
}

class Endpoints {
 public:
  class Client {
   public:
    virtual ~Client() = default;
    // Called once for every submitted call. The client may submit its next call from here.
    virtual void on_done(Instant now, std::uint32_t rank, const CallResult& result) = 0;
    // Called when the rank has left the group and its process has ended.
    virtual void on_left(Instant, std::uint32_t) {}
  };

  virtual ~Endpoints() = default;

  // Submits a call. A rank has one call open at a time.
  virtual void submit(Instant now, std::uint32_t rank, const Call& call, Client& client) = 0;

  // Handles an event of EventKind::endpoint.
  virtual void on_event(const Event& event) = 0;

  // A paused rank neither receives nor sends nor wakes, and arriving packets wait as in a socket. A
  // dead rank is silent for ever.
  virtual void pause(Instant now, std::uint32_t rank) = 0;
  virtual void resume(Instant now, std::uint32_t rank) = 0;
  virtual void kill(Instant now, std::uint32_t rank) = 0;
};

}  // namespace leeway::sim
