// Reduce half: contributions to every shard go out. Contributions to our shard are staged as they
// came, and summed in rank order as soon as their scales are known.
//
// Staging instead of summing on arrival makes the result a function of the arrival bitmap alone. It
// also lets the scales of the estimators (n_i/k_i, 1/count) be applied once they are known. The
// contribution that completes a packet is not staged. It is summed from the datagram it came in,
// while that is in the first-level cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/arena.h"
#include "codec/codec.h"
#include "collective/noise_meter.h"
#include "collective/operation_plan.h"
#include "collective/packet_recovery.h"
#include "collective/parity_cache.h"
#include "collective/scaled_sum.h"
#include "collective/staging.h"
#include "estimate/link_history.h"
#include "estimate/scale_plan.h"
#include "leeway/options.h"
#include "leeway/report.h"
#include "protocol/round.h"
#include "schedule/packet_cursor.h"
#include "schedule/packet_grid.h"
#include "schedule/shard_map.h"

namespace leeway::collective {

class Reduction {
 public:
  explicit Reduction(MemoryWatcher* watcher) : copied_input_(watcher), kept_(watcher) {}

  // Begins an operation. `history`: of the links into this rank, before this operation. The plan
  // must outlive the operation.
  void begin(const OperationPlan& plan, const estimate::LinkHistory& history);

  const schedule::PacketGrid& grid() const { return grid_; }  // for our own shard
  schedule::PacketGrid grid_of(Rank owner) const {
    return plan_->grid_of(half().shards[owner].count, half().format);
  }

  protocol::Payload payload(Rank owner, PacketIndex index, PacketIndex ahead,
                            MutableByteSpan scratch);
  // Takes in a packet. `flows` are the ledgers of all senders, without it. Chunks of our shard
  // whose results are complete because of it are pushed to `reduced`.
  protocol::Acceptance accept(Rank from, const wire::DataHeader& header, ByteSpan payload,
                              std::span<const protocol::ReceiveFlow> flows,
                              schedule::ChunkQueue& reduced);
  // As protocol::RoundClient, for a coded phase. Contributions then stay staged, even those that
  // were summed.
  protocol::Payload parity(Rank owner, wire::ParityPlace place, MutableByteSpan scratch);
  bool hold_parity(Rank from, PacketIndex index, ByteSpan payload);
  ByteSpan lift_parity(Rank from, PacketIndex index);
  bool recover(Rank from, const protocol::RoundClient::CodedPackets& code,
               std::span<const protocol::ReceiveFlow> flows, schedule::ChunkQueue& reduced);
  // No more packets will come. Reduces the remaining chunks with the scales for the contributions
  // that are here.
  void settle(std::span<const protocol::ReceiveFlow> flows, schedule::ChunkQueue& reduced);

  void fill_report(CollectiveReport& report) const;
  // Sum of the weights of the ranks whose contribution was heard, including this one's.
  double units() const;

 private:
  const ReductionPlan& half() const { return plan_->reduction; }
  void take_input();
  void prepare_code();
  bool coded() const { return plan_->round.phase(protocol::FlowKind::reduce).coded; }
  // Encoded bytes of a full packet of any shard.
  std::size_t packet_bytes() const {
    return half().format.encoded_bytes(grid_.elements_per_packet());
  }
  // Memory where our encoded contribution stays for the sake of its parity.
  MutableByteSpan kept_place(Rank owner, const schedule::PacketGrid& grid, PacketIndex index);
  MutableByteSpan staged_place(Rank from, PacketIndex index) {
    return {staging_.lend(from, index), encoded_bytes(index)};
  }
  // Returns true if contributions wait in memory of ours.
  bool stages() const { return plan_->contents && plan_->payload == nullptr; }
  protocol::Payload encoded_elsewhere(Rank owner, PacketIndex index) const;
  bool pays_residual(Rank owner) const;
  void add_residual(Rank owner);
  codec::Place place_of(Rank source, Rank owner, const schedule::PacketGrid& grid,
                        PacketIndex index) const;
  void keep_residual(std::span<const float> values, const codec::Place& place, ByteSpan encoded);
  // c of our own contribution to our shard.
  float own_weight() const { return static_cast<float>(plan_->round.weight_for(plan_->self)); }
  void measure_own(PacketIndex index);
  // Factors to values per unit of work: a sum's contributions are units.
  double per_unit(double weight) const { return half().op == ReduceOp::avg ? 1.0 / weight : 1.0; }
  double result_per_unit() const { return half().op == ReduceOp::avg ? 1.0 : 1.0 / plan_->size; }
  // A packet of the owner's shard as it lies in our tensor.
  ByteSpan input_to(Rank owner, const schedule::PacketGrid& grid, PacketIndex index) const;
  // Our contribution to that packet: the same, or, with a factor, products that are written to
  // `memory`.
  ByteSpan contribution_to(Rank owner, const schedule::PacketGrid& grid, PacketIndex index,
                           std::byte* memory) const;
  std::size_t encoded_bytes(PacketIndex index) const {
    return half().format.encoded_bytes(grid_.packet_elements(index));
  }
  // A contribution that is used directly from the datagram in which it arrived.
  struct Direct {
    Rank rank = kNoRank;
    const std::byte* data = nullptr;
  };
  ByteSpan contribution(Rank rank, PacketIndex index, const Direct& direct);
  // Our own contribution. It is copied if the result takes its place and may have to be formed
  // again.
  ByteSpan kept_contribution(PacketIndex index);
  std::byte* result_of(PacketIndex index) const {
    return half().result + grid_.packet_offset(index) * element_bytes_;
  }
  bool all_finite(PacketIndex index, const Direct& direct);
  // Returns false for values that are not all finite, if those are left out: they would spoil every
  // mean.
  bool is_measurable(ByteSpan values) const;
  void reduce_complete(PacketIndex index, const Direct& direct, schedule::ChunkQueue& reduced);
  void reduce_partial(PacketIndex index, std::span<const protocol::ReceiveFlow> flows,
                      schedule::ChunkQueue& reduced);
  void note_progress(Rank from, PacketPosition position,
                     std::span<const protocol::ReceiveFlow> flows, schedule::ChunkQueue& reduced);
  void settle_chunk(ChunkIndex chunk, std::span<const protocol::ReceiveFlow> flows,
                    schedule::ChunkQueue& reduced);
  std::uint32_t chunks_passed(PacketPosition position) const;
  ChunkIndex passed_chunk(std::uint32_t nth) const;
  void recall_rates(const estimate::LinkHistory& history);
  void tally(std::span<const protocol::ReceiveFlow> flows);
  bool uncount_non_finite(std::span<const protocol::ReceiveFlow> flows);
  bool is_here(Rank rank, PacketIndex index, std::span<const protocol::ReceiveFlow> flows) const;
  void on_reduced(PacketIndex index, const estimate::BlockScales& block,
                  schedule::ChunkQueue& reduced);
  bool sums_by_scales() const;
  void combine_exactly(PacketIndex index, const Direct& direct);
  estimate::BlockScales sum(PacketIndex index, const estimate::BlockScales& block,
                            const Direct& direct);
  void take_terms(PacketIndex index, ByteSpan own, const Direct& direct);
  bool sum_terms(PacketIndex index);
  bool leave_out_non_finite(PacketIndex index, const estimate::BlockScales& block);
  void apply_control(PacketIndex index, float scale);
  void build_plan(std::span<const estimate::LinkTally> tallies);

  const OperationPlan* plan_ = nullptr;  // plan of the current operation
  const std::byte* input_ = nullptr;     // the whole tensor, the caller's or our copy
  schedule::PacketGrid grid_;
  schedule::Shard own_;
  std::size_t element_bytes_ = 4;
  Staging staging_;
  Arena copied_input_;  // or the input plus the residual
  // Decoded values of one packet, for types other than float32.
  Arena block_;
  bool multiplies_ = false;  // a factor is still to be applied to the values at `input_`
  // Our contribution to one packet then, or if the result takes its place.
  Arena own_packet_;
  // For a coded phase.
  Arena kept_;                          // our encoded contributions
  std::vector<std::size_t> kept_from_;  // by owner: offset of the first packet
  std::vector<ParityCache> parities_;   // by owner
  PacketRecovery recovery_;
  // Contributions that a packet of our shard still waits for.
  std::vector<std::uint16_t> missing_;
  std::vector<std::uint32_t> chunk_left_;  // packets of a chunk that are not reduced
  Bitmap reduced_packets_;
  std::vector<estimate::LinkTally> tallies_;
  estimate::ScalePlan scale_plan_;
  bool scale_plan_built_ = false;
  std::vector<float> scales_;
  estimate::WeightMoments scale_moments_;  // moments of `scales_`, if noise is measured
  // By rank and packet: not finite, and taken out of the counts. No bits if there was none.
  Bitmap uncounted_;
  std::vector<Term> terms_;  // terms of the packet that is summed
  std::vector<Rank> term_ranks_;
  std::vector<const std::byte*> operands_;
  std::vector<std::uint64_t> mask_;
  std::vector<float> weights_;          // c_i as heard so far
  bool settles_passed_chunks_ = false;  // see note_progress()
  PacketIndex start_;                   // packet with which every sender starts its cyclic order
  // By sender: chunks of that order that it has certainly passed.
  std::vector<std::uint32_t> passed_;
  std::uint32_t settled_chunks_ = 0;  // chunks of that order that all senders have passed
  ContributorStats contributors_;
  std::uint64_t untouched_ = 0;
  std::uint64_t non_finite_ = 0;
  // All weights are 0, so complete packets are as untouched as empty ones.
  bool nobody_has_units_ = false;
  // Peers whose first pass was lost whole, but not the repair; and peers of which no packet
  // arrived.
  std::uint32_t fetched_ = 0;
  std::uint32_t unheard_ = 0;
};

}  // namespace leeway::collective
