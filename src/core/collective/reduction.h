// Reduce half. Sends this rank's contributions to the owners of all shards. Stages the
// contributions to this rank's shard, and sums them in rank order as soon as their scales are
// known.
//
// Because of staging, the result depends only on which packets arrived, not on their order. The
// estimators' scales (packets sent over packets arrived, 1/count of contributors) need to be known
// only at the end. The contribution that completes a packet is not staged. It is summed from its
// datagram, in the first-level cache.
//
// This class sums. Its members know what goes out (OwnContribution), which packets and chunks are
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

  // Begins an operation. `history`: delivery rates of the links into this rank in earlier
  // operations. The plan must outlive the operation.
  void begin(const OperationPlan& plan, const estimate::LinkHistory& history);

  const schedule::PacketGrid& grid() const { return grid_; }  // for our own shard
  schedule::PacketGrid grid_of(Rank owner) const { return plan_->reduced_grid(owner); }

  // Forms the packets and parity that this rank sends.
  OwnContribution& own() { return own_; }
  // Takes in a packet. `flows`: the ledgers of all senders, which do not have this packet yet.
  // Pushes the chunks of our shard that are now reduced to `reduced`.
  protocol::Acceptance accept(Rank from, const wire::DataHeader& header, ByteSpan payload,
                              std::span<const protocol::ReceiveFlow> flows,
                              schedule::ChunkQueue& reduced);
  // As in protocol::RoundClient, for a coded phase. Contributions stay staged there after they were
  // summed, because parity recovers other packets from them.
  bool hold_parity(Rank from, PacketIndex index, ByteSpan payload);
  ByteSpan lift_parity(Rank from, PacketIndex index);
  bool recover(Rank from, const protocol::RoundClient::CodedPackets& code,
               std::span<const protocol::ReceiveFlow> flows, schedule::ChunkQueue& reduced);
  // Reduces the rest of the shard from what has arrived. Call it when no more packets will come.
  void settle(std::span<const protocol::ReceiveFlow> flows, schedule::ChunkQueue& reduced);

  void fill_report(CollectiveReport& report) const;
  // Returns the sum of the units of work of this rank and of all ranks whose weight has arrived.
  double units() const { return scales_.units(); }

 private:
  const ReductionPlan& half() const { return plan_->reduction; }
  bool coded() const { return plan_->round.phase(protocol::FlowKind::reduce).coded; }
  // Returns true if contributions exist and are summed here, so that they wait in staging.
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
  // The contribution that completes a packet, still in its datagram.
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
