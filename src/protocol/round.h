// One open operation: the flows of its phases, how far they have come, and when it is over.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

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
  std::uint32_t passes_open = 0;    // of these, not all of a pass has been handed out
  std::uint32_t receives_open = 0;  // receive flows not finished
  bool settled = false;             // on_settled() was called
  bool deadline_cut = false;        // by the deadline here

  // The rank whose deadline cut a flow of this phase; kNoRank if none did.
  Rank cut_elsewhere() const;
  void set_pass_over(SendFlow& flow, bool over) {
    if (flow.pass_over == over) return;
    flow.pass_over = over;
    over ? --passes_open : ++passes_open;
  }
};

// What the first peer at which a collective failed said of it; kNoRank: no peer did.
struct Told {
  Rank by = kNoRank;
  StatusCode code = StatusCode::kOk;
  Rank about = kNoRank;
};

// The rank that an error names, and, of a mismatch, what that rank means.
struct Blame {
  Rank rank = kNoRank;
  wire::OperationTag tag{};
  Rank first = kNoRank;  // where the operation failed first, for the same reason
};

struct MessageStream;

// Plain state with the questions that need no other state. Endpoint moves it.
struct Round {
  std::uint32_t slot = 0;  // of a collective: its place among kOpenCollectivesMax
  std::uint32_t number = 0;
  std::uint64_t opening = 0;        // counts all rounds of this rank: the older, the less
  const RoundPlan* plan = nullptr;  // the client's, until on_closed()
  MessageStream* stream = nullptr;  // of a message
  std::uint32_t tag_digest = 0;
  RoundClient* client = nullptr;
  Instant opened_at{0};
  Instant gate_open_at{0};  // every peer we send to had opened the operation
  std::uint32_t gates_closed = 0;
  bool done = false;   // on_done() was called; only stragglers' needs are left
  bool ended = false;  // it leaves the protocol when the event that ended it has been handled
  // A message that is doomed fails with this at fail_at, after its peer could be told.
  Status failure;
  Instant fail_at = Instant::infinite_future();
  Told told;
  Blame blame;  // of a collective that failed
  // A peer whose packets are of another operation, and who has not said yet which it means.
  Rank disputed_by = kNoRank;
  bool refuted = false;  // such a peer said that it means this one: it is faulty
  // Where it needs ranks that it exchanges no packets with: when to ask everybody how far they are,
  // and how often that was done.
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
  // The ranks with which it has flows: [first_peer(), end_peer(size)), perhaps this one among them,
  // whose flows are empty.
  Rank first_peer() const { return plan->point_to_point() ? plan->point_peer : Rank{0}; }
  Rank end_peer(int size) const {
    return static_cast<Rank>(plan->point_to_point() ? plan->point_peer + 1 : size);
  }

  // As people know it.
  std::uint32_t number_said() const { return plan->number_said.value_or(number); }
  // Whether either of the two sends the other anything.
  bool exchanges_with(Rank peer) const;
  // The caller wants to know whether this flow was used, and nobody has said so.
  bool awaits_word(FlowKind kind, const SendFlow& flow) const {
    return plan->confirm_use && kind == FlowKind::reduce && !flow.informed;
  }
  bool all_settled() const;
  // Nothing that the caller's memory is needed for is outstanding.
  bool caller_may_go() const;
  // Every receiver has settled what we send it.
  bool all_confirmed() const;

 private:
  std::size_t flow_of(Rank peer) const { return plan->point_to_point() ? 0 : peer; }
};

// "all_reduce sum float[1024] codec fp32 best_effort ratio root 0", both sides of a mismatch
// message. Null-terminated.
std::array<char, 140> describe(const wire::OperationTag& tag);

}  // namespace leeway::protocol
