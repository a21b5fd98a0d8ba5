// Plan of an operation, which the protocol needs to open a round for it: its phases, what each must
// deliver, and by when.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bitmap.h"
#include "base/time.h"
#include "leeway/options.h"
#include "leeway/types.h"
#include "schedule/packet_cursor.h"
#include "wire/packet.h"

namespace leeway::protocol {

using wire::FlowKind;

// One phase of an operation.
struct PhasePlan {
  bool active = false;
  Delivery::Kind delivery = Delivery::Kind::exact;
  double loss_max = 0.0;
  Instant deadline{0};  // when a lossy phase settles with the packets it has
  Codec codec = Codec::native;
  // Order in which outgoing chunks become available. Null if all are available at once, and go in
  // permuted order.
  const schedule::ChunkQueue* queue = nullptr;
  // For each peer, the chunks that may be sent now, if chunks become available one by one in the
  // flow's order. If the span is empty, all chunks may be sent.
  std::span<const Bitmap> ready;
  // Receivers may ask for packets again. This is false only for a best-effort phase that has
  // neither Replica's age cap nor fetch_empty.
  bool repairable = true;
  // A best-effort receiver asks for a whole flow again if its first pass brought nothing.
  bool fetch_empty = false;
  // Every receiver is sent the same packets, so multicast may carry them once for all.
  bool same_for_all = false;
  // Outgoing payload stays in memory after on_done(), so the caller need not wait until receivers
  // have confirmed.
  bool payload_retained = false;
  // The first pass may end with parity, from which receivers compute lost packets (WIRE 2.10).
  // Exact delivery only.
  bool coded = false;

  // Returns true if the receiver does not ask for losses of the first pass. It still asks for
  // required packets, and with fetch_empty for a pass that was lost whole.
  bool gives_up() const { return delivery == Delivery::Kind::best_effort; }
};

// The active phases of an operation, in order.
class ActiveKinds {
 public:
  void add(FlowKind kind) { kinds_[count_++] = kind; }
  const FlowKind* begin() const { return kinds_.data(); }
  const FlowKind* end() const { return kinds_.data() + count_; }

 private:
  std::array<FlowKind, wire::kFlowKinds> kinds_{};
  std::size_t count_ = 0;
};

// One operation as the protocol sees it. Made by the operation when it begins, and not changed.
struct RoundPlan {
  wire::OperationTag tag;
  const char* name = "";  // for error messages, such as "all_reduce"
  Instant deadline{0};
  Duration deadline_length{0};
  // Deadline and number in error texts. For a hop of a call by sites, they are those of the whole
  // call. For any other call, the number is its place among all calls of the communicator. Without
  // a number, texts give the round's.
  Duration deadline_said{0};
  std::optional<std::uint32_t> number_said;
  // Weight c_i of our contribution (estimators). If owner_weights is not empty, it gives the weight
  // for each owner instead.
  double weight = 1.0;
  std::span<const double> owner_weights;
  // The caller waits until every owner has reported whether it used any of our contribution
  // (SendFlow::missed).
  bool confirm_use = false;
  // Number of a collective; with nullopt the collective takes the next number. This rank opens no
  // rounds for numbers that are skipped, because it made those calls another way.
  std::optional<std::uint32_t> number;
  // The round is a stand-in: it only holds the place of an operation that goes another way, may yet
  // come, or is refused here. It has no flows, and is open until end_stand_in() or reopen_round().
  bool stands_in = false;
  // The result needs every rank, including ranks with which this rank exchanges no packets, as in
  // an all_reduce of few owners.
  bool needs_every_rank = false;
  // Uneven all_to_all: elements that we send to each rank, and that we expect from it. The two
  // ranks of a pair must agree; no other rank knows these numbers.
  std::span<const std::uint64_t> pair_sends;
  std::span<const std::uint64_t> pair_receives;
  std::array<PhasePlan, wire::kFlowKinds> phases;
  Rank point_peer = kNoRank;  // send/recv: the other side
  bool point_send = false;
  std::uint32_t message_tag = 0;

  bool in_pairs() const { return !pair_sends.empty(); }
  bool point_to_point() const { return point_peer != kNoRank; }
  double weight_for(Rank owner) const {
    return owner_weights.empty() ? weight : owner_weights[owner];
  }
  ActiveKinds active_kinds() const {
    ActiveKinds active;
    for (const FlowKind kind : {FlowKind::reduce, FlowKind::spread, FlowKind::point}) {
      if (phase(kind).active) active.add(kind);
    }
    return active;
  }
  PhasePlan& phase(FlowKind kind) { return phases[static_cast<int>(kind)]; }
  const PhasePlan& phase(FlowKind kind) const { return phases[static_cast<int>(kind)]; }
};

}  // namespace leeway::protocol
