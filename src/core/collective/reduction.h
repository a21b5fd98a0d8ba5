// Reduce half: contributions to every shard go out. Contributions to our shard are staged as they
// came, and summed in rank order as soon as their scales are known.
//
// Staging instead of summing on arrival makes the result a function of the arrival bitmap alone. It
// also lets the scales of the estimators (n_i/k_i, 1/count) be applied once they are known. The
// contribution that completes a packet is not staged. It is summed from the datagram it came in,
// while that is in the first-level cache.
//
// This class sums. Parts of it know what goes out (OwnContribution), which packets and chunks are
// complete or passed (PacketProgress, PassedChunks), by which scales to sum (ContributionScales),
// and what to report (ContributionCounts).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/growing_buffer.h"
#include "collective/contribution_counts.h"
#include "collective/contribution_scales.h"
#include "collective/operation_plan.h"
#include "collective/own_contribution.h"
#include "collective/packet_progress.h"
#include "collective/packet_recovery.h"
#include "collective/passed_chunks.h"
#include "collective/scaled_sum.h"
#include "collective/staging.h"
#include "protocol/round.h"

namespace leeway::collective {

class Reduction {
 public:
  explicit Reduction(MemoryWatcher* watcher) : own_(watcher) {}

  // Begins an operation. `history`: of the links into this rank, before this operation. The plan
  // must outlive the operation.
  void begin(const OperationPlan& plan, const estimate::LinkHistory& history);

  const schedule::PacketGrid& grid() const { return grid_; }  // for our own shard
  schedule::PacketGrid grid_of(Rank owner) const { return plan_->reduced_grid(owner); }

  // This rank's contributions. Its payload() and parity() form what is sent.
  OwnContribution& own() { return own_; }
  // Takes in a packet. `flows` are the ledgers of all senders, without this packet. Pushes the
  // chunks of our shard that it completes to `reduced`.
  protocol::Acceptance accept(Rank from, const wire::DataHeader& header, ByteSpan payload,
                              std::span<const protocol::ReceiveFlow> flows,
                              schedule::ChunkQueue& reduced);
  // As protocol::RoundClient, for a coded phase. Contributions then stay staged, even those that
  // were summed.
  bool hold_parity(Rank from, PacketIndex index, ByteSpan payload);
  ByteSpan lift_parity(Rank from, PacketIndex index);
  bool recover(Rank from, const protocol::RoundClient::CodedPackets& code,
               std::span<const protocol::ReceiveFlow> flows, schedule::ChunkQueue& reduced);
  // Reduces the remaining chunks from the contributions that are here. Call it when no more packets
  // will come.
  void settle(std::span<const protocol::ReceiveFlow> flows, schedule::ChunkQueue& reduced);

  void fill_report(CollectiveReport& report) const;
  // Sum of the weights of the ranks whose contribution was heard, including this one's.
  double units() const { return scales_.units(); }

 private:
  const ReductionPlan& half() const { return plan_->reduction; }
  bool coded() const { return plan_->round.phase(protocol::FlowKind::reduce).coded; }
  // Returns true if contributions wait in staging.
  bool stages() const { return plan_->contents && plan_->payload == nullptr; }
  std::size_t encoded_bytes(PacketIndex index) const {
    return half().format.encoded_bytes(grid_.packet_elements(index));
  }
  MutableByteSpan staged_place(Rank from, PacketIndex index) {
    return {staging_.lend(from, index), encoded_bytes(index)};
  }
  MutableByteSpan result_of(PacketIndex index) const {
    return {half().result + grid_.packet_offset(index) * element_bytes_,
            grid_.packet_elements(index) * element_bytes_};
  }
  // A contribution that is used directly from the datagram in which it arrived.
  struct Direct {
    Rank rank = kNoRank;
    const std::byte* data = nullptr;
  };
  ByteSpan contribution(Rank rank, PacketIndex index, const Direct& direct);
  bool all_finite(PacketIndex index, const Direct& direct);
  void reduce_complete(PacketIndex index, const Direct& direct, schedule::ChunkQueue& reduced);
  void reduce_partial(PacketIndex index, std::span<const protocol::ReceiveFlow> flows,
                      schedule::ChunkQueue& reduced);
  void settle_chunk(ChunkIndex chunk, std::span<const protocol::ReceiveFlow> flows,
                    schedule::ChunkQueue& reduced);
  bool uncount_non_finite(std::span<const protocol::ReceiveFlow> flows);
  void on_reduced(PacketIndex index, const estimate::BlockScales& block,
                  schedule::ChunkQueue& reduced);
  bool sums_by_scales() const;
  void combine_exactly(PacketIndex index, const Direct& direct);
  estimate::BlockScales sum(PacketIndex index, const estimate::BlockScales& block,
                            const Direct& direct);
  void take_terms(PacketIndex index, ByteSpan own, const Direct& direct);
  bool sum_terms(PacketIndex index);
  bool find_non_finite(PacketIndex index);
  void apply_control(PacketIndex index, float scale);

  const OperationPlan* plan_ = nullptr;  // plan of the current operation
  schedule::PacketGrid grid_;
  std::size_t element_bytes_ = 4;
  OwnContribution own_;
  PacketProgress progress_;
  PassedChunks passed_;
  ContributionScales scales_;
  ContributionCounts counts_;
  Staging staging_;
  PacketRecovery recovery_;  // for a coded phase
  GrowingBuffer block_;      // decoded values of one packet, for types other than float32
  std::vector<Term> terms_;  // terms of the packet that is summed
  std::vector<Rank> term_ranks_;
  std::vector<Rank> left_out_;  // ranks whose terms are not finite
  std::vector<const std::byte*> operands_;
};

}  // namespace leeway::collective
