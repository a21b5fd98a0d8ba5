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

// Flows are by peer; a message has one of each.
struct PhaseState {
  std::vector<SendFlow> send;
  GroupPass group;
  std::vector<ReceiveFlow> receive;
  std::uint32_t sends_open = 0;     // send flows whose receiver has not settled
  std::uint32_t passes_open = 0;    // those of sends_open that have a pass not fully handed out
  std::uint32_t receives_open = 0;  // receive flows not finished
  bool settled = false;             // on_settled() was called
  bool deadline_cut = false;        // the deadline of this rank cut the phase

  // Returns the rank whose deadline cut a flow of this phase; kNoRank if none did.
  Rank cut_elsewhere() const;
  void set_pass_over(SendFlow& flow, bool over) {
    if (flow.pass_over == over) return;
    LEEWAY_ASSERT(over ? passes_open > 0 : passes_open < sends_open);
    flow.pass_over = over;
    over ? --passes_open : ++passes_open;
  }
};

// Report of the first peer at which a collective failed; kNoRank if there was none.
struct Told {
  Rank by = kNoRank;
  StatusCode code = StatusCode::kOk;
  Rank about = kNoRank;
};

// Rank that an error names, and, for a mismatch, the tag that this rank means.
struct Blame {
  Rank rank = kNoRank;
  wire::OperationTag tag{};
  Rank first = kNoRank;  // where the operation failed first, for the same reason
  // What peers are told, if that is not the code of the status.
  StatusCode told = StatusCode::kOk;
};

struct MessageStream;

// Plain state, with the queries that need no other state. The parts of Endpoint move it.
struct Round {
  std::uint32_t slot = 0;  // for a collective: its place among kOpenCollectivesMax
  std::uint32_t number = 0;
  std::uint64_t opening = 0;        // counts all rounds of this rank: lower is older
  const RoundPlan* plan = nullptr;  // owned by the client, valid until on_closed()
  MessageStream* stream = nullptr;  // for a message
  std::uint32_t tag_digest = 0;
  RoundClient* client = nullptr;
  Instant opened_at{0};
  Instant gate_open_at{0};  // when the last of the peers that we send to opened it
  std::uint32_t gates_closed = 0;
  bool done = false;   // on_done() was called; only peers still need it
  bool ahead = false;  // PeerMessages::run_ahead()
  // The round leaves the protocol once the event that ended it has been handled.
  bool ended = false;
  // A message that is to fail does so with this status at fail_at, after its peer could be told.
  Status failure;
  Instant fail_at = Instant::infinite_future();
  Told told;
  Blame blame;  // rank that the failure of a collective names
  // A peer that sends packets of another operation and has not said yet what that operation is.
  Rank disputed_by = kNoRank;
  bool refuted = false;  // that peer said that it means this operation, so it is faulty
  // For operations that need ranks that they exchange no packets with: when to ask all ranks how
  // far they are, and the number of times that was done.
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

  // Number of the call in texts.
  std::uint32_t number_said() const { return plan->number_said.value_or(number); }
  // Returns true if this rank and the peer send each other any packets.
  bool exchanges_with(Rank peer) const;
  // Returns true if the caller waits to know whether this flow was used, and no report has said so.
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

// Describes one side of a mismatch for its message, such as "all_reduce sum float[1024] codec fp32
// best_effort ratio root 0". Null-terminated.
std::array<char, 140> describe(const wire::OperationTag& tag);

}  // namespace leeway::protocol
