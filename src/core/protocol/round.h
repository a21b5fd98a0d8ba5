// One open operation: the flows of its phases, how far they have come, and when it is over.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/contracts.h"
#include "leeway/status.h"
#include "protocol/flow.h"
#include "protocol/round_client.h"
#include "protocol/round_plan.h"

namespace leeway::protocol {

// One phase of a round. It has flows for each peer; for a message, one send and one receive flow.
struct PhaseState {
  std::vector<SendFlow> send;
  GroupPass group;
  std::vector<ReceiveFlow> receive;
  std::uint32_t sends_open = 0;     // send flows whose receiver has not settled
  std::uint32_t passes_open = 0;    // those of sends_open that have a pass not fully handed out
  std::uint32_t receives_open = 0;  // receive flows not finished
  bool settled = false;             // on_settled() was called
  bool deadline_cut = false;        // this rank's deadline ended the phase

  // Returns the rank whose deadline cut a flow of this phase; kNoRank if none did.
  Rank cut_elsewhere() const;
  void set_pass_over(SendFlow& flow, bool over) {
    if (flow.pass_over == over) return;
    LEEWAY_ASSERT(over ? passes_open > 0 : passes_open < sends_open);
    flow.pass_over = over;
    over ? --passes_open : ++passes_open;
  }
};

// First report of a collective's failure at another rank. `by` is the rank where it failed, kNoRank
// if no report told of a failure; `about` is the rank that its error names.
struct Told {
  Rank by = kNoRank;
  StatusCode code = StatusCode::kOk;
  Rank about = kNoRank;
};

// The rank that an error names and, for a mismatch, the operation that the named rank means.
struct Blame {
  Rank rank = kNoRank;
  wire::OperationTag tag{};
  Rank first = kNoRank;  // where the operation failed first, for the same reason
  // Code that peers are told; if kOk, they are told the code of the status.
  StatusCode told = StatusCode::kOk;
};

struct MessageStream;

// Which open rounds to cancel: all, or those for which a caller waits. Rounds for which no caller
// waits are open only for peers that lack their data.
enum class Cancelled : std::uint8_t { all, awaited };

// State of a round, with the queries that need no other state. The parts of Endpoint change it.
struct Round {
  std::uint32_t slot = 0;  // for a collective: its place among kOpenCollectivesMax
  std::uint32_t number = 0;
  std::uint64_t opening = 0;        // counts all rounds of this rank: lower is older
  const RoundPlan* plan = nullptr;  // owned by the client, valid until on_closed()
  MessageStream* stream = nullptr;  // for a message
  std::uint32_t tag_digest = 0;
  RoundClient* client = nullptr;
  Instant opened_at{0};
  Instant gate_open_at{0};  // when the last of the peers that we send to opened the operation
  std::uint32_t gates_closed = 0;  // peers that we send to and that have not opened it
  bool done = false;               // on_done() was called; only peers still need the round
  bool ahead = false;              // PeerMessages::run_ahead() was called
  bool talks = false;              // for a message: see peer_messages.h
  bool mentioned = false;          // talks because the peer mentioned it
  // If true, the round leaves the protocol once the event that ended it has been handled.
  bool ended = false;
  // A failing message ends with this status at fail_at, so that its peer can be told before.
  Status failure;
  Instant fail_at = Instant::infinite_future();
  Told told;
  Blame blame;  // rank that the failure of a collective names
  // A peer that sends packets of another operation and has not said yet what that operation is.
  Rank disputed_by = kNoRank;
  bool refuted = false;  // that peer said that it means this operation, so it is faulty
  // When to ask all ranks how far they are, and how often that was done (Inquiry).
  Instant inquire_at = Instant::infinite_future();
  std::uint32_t inquiries = 0;
  std::array<PhaseState, wire::kFlowKinds> phases;
  std::uint64_t bytes_sent = 0;

  void reset(std::uint32_t number, const RoundPlan& plan, RoundClient* client, int size,
             Instant now);

  PhaseState& phase(FlowKind kind) { return phases[static_cast<int>(kind)]; }
  const PhaseState& phase(FlowKind kind) const { return phases[static_cast<int>(kind)]; }
  SendFlow& send(FlowKind kind, Rank peer) { return phase(kind).send[flow_of(peer)]; }
  const SendFlow& send(FlowKind kind, Rank peer) const { return phase(kind).send[flow_of(peer)]; }
  ReceiveFlow& receive(FlowKind kind, Rank peer) { return phase(kind).receive[flow_of(peer)]; }
  const ReceiveFlow& receive(FlowKind kind, Rank peer) const {
    return phase(kind).receive[flow_of(peer)];
  }
  // Range of ranks with which the round has flows: [first_peer(), end_peer(size)). It may contain
  // this rank, whose flows are empty.
  Rank first_peer() const { return plan->point_to_point() ? plan->point_peer : Rank{0}; }
  Rank end_peer(int size) const {
    return static_cast<Rank>(plan->point_to_point() ? plan->point_peer + 1 : size);
  }

  // Number of the call in error texts.
  std::uint32_t number_said() const { return plan->number_said.value_or(number); }
  // Returns true if this rank and the peer send each other any packets.
  bool exchanges_with(Rank peer) const;
  // Returns true if the caller waits to know whether this flow was used, and no report has said it.
  bool awaits_word(FlowKind kind, const SendFlow& flow) const {
    return plan->confirm_use && kind == FlowKind::reduce && !flow.informed;
  }
  bool all_settled() const;
  // Returns true if the caller's memory is not needed any more.
  bool caller_may_go() const;
  // Returns true if every receiver has settled its flow.
  bool all_confirmed() const;

 private:
  std::size_t flow_of(Rank peer) const { return plan->point_to_point() ? 0 : peer; }
};

// Describes one side of a mismatch for its error, such as "all_reduce float[1024] sum fp32/fp32
// best_effort ratio". Null-terminated.
std::array<char, 140> describe(const wire::OperationTag& tag);

}  // namespace leeway::protocol
