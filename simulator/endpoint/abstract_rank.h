// One rank of the abstract endpoints: its open call and what is left of earlier ones.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "endpoint/abstract_link.h"
#include "endpoint/abstract_plan.h"
#include "endpoint/abstract_shard.h"
#include "endpoint/endpoints.h"
#include "endpoint/uplink.h"
#include "network/packet.h"

namespace leeway::sim {

// protocol::PhaseState without its flows.
struct AbstractPhase {
  std::uint32_t receives_open = 0;
  std::uint32_t sends_open = 0;   // flows whose receiver has not settled
  std::uint32_t passes_open = 0;  // of those, flows with packets left to hand out
  bool settled = true;
};

// A flow of an earlier call: its caller went on, its receiver has not confirmed.
struct AbstractLingering {
  std::uint32_t peer = 0;
  std::uint32_t opened = 0;  // which call, as AbstractRank::opened
  int half = 0;
  const AbstractPlan* plan = nullptr;
  std::int64_t deadline_ns = 0;
  AbstractSendFlow flow;
};

struct AbstractRank {
  // The call that is open, or was last.
  const AbstractPlan* plan = nullptr;
  Endpoints::Client* client = nullptr;
  std::uint32_t opened = 0;  // calls so far, this one included
  std::int64_t submitted_ns = 0;
  std::array<AbstractPhase, kHalves> phases;
  AbstractShard shard;
  std::vector<std::uint64_t> ledger;  // which packets arrived, a bit each
  std::uint64_t expected = 0;
  std::uint64_t arrived = 0;
  std::uint64_t repaired = 0;
  std::uint64_t bytes_sent = 0;
  Status status;
  bool deadline_cut = false;
  bool done = true;
  bool closed = true;       // done, and every receiver has confirmed
  bool result_due = false;  // the client is to be told
  bool release_due = false;

  std::vector<AbstractLingering> lingering;  // by peer, then by age

  // Peers with something to send, each at most once.
  struct Ring {
    std::vector<std::uint16_t> items;
    std::uint32_t head = 0;
    std::uint32_t count = 0;
    void push(std::uint32_t peer) {
      std::uint32_t at = head + count++;
      if (at >= items.size()) at -= static_cast<std::uint32_t>(items.size());
      items[at] = static_cast<std::uint16_t>(peer);
    }
    std::uint32_t first() const { return items[head]; }
    std::uint32_t pop() {
      const std::uint32_t peer = items[head];
      if (++head == items.size()) head = 0;
      --count;
      return peer;
    }
  };
  Ring control;
  Ring data;

  Uplink uplink;

  struct Early {
    std::uint32_t from = 0;
    std::uint64_t word = 0;
  };
  std::vector<Early> early;    // data of calls that are not open here yet
  std::vector<Packet> socket;  // of a paused process
  std::uint64_t socket_bytes = 0;
  bool paused = false;
  bool dead = false;
};

}  // namespace leeway::sim
