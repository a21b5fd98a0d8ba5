// What a collective must do: the elements that each rank sends to each, and the packets that carry
// them. The plan is derived only from the call, with the library's arithmetic of shards, packets
// and formats, not from the library's engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "collective/operation_spec.h"
#include "protocol/endpoint.h"
#include "schedule/packet_grid.h"
#include "schedule/shard_map.h"
#include "wire/packet.h"

namespace leeway::sim {

// A stream of packets from one rank to another. Offsets are elements.
struct FlowPlan {
  schedule::PacketGrid grid;
  std::size_t source = 0;      // where the flow begins in its sender's contribution
  std::size_t result = 0;      // where the flow begins in its receiver's result
  std::uint64_t position = 0;  // place of its first element; it keys random draws
};

class CallPlan {
 public:
  CallPlan() = default;
  // `number`: the collective's number, which decides the owners if only few ranks own packets.
  // `lengths`: the lengths of uneven blocks (Call::lengths), else empty.
  CallPlan(const collective::OperationSpec& spec, const protocol::EndpointConfig& config,
           std::uint32_t number, std::span<const std::size_t> lengths = {});

  // Returns true for kinds, types and codecs whose contents can be recomputed.
  bool covered() const { return covered_; }
  collective::OperationKind kind() const { return kind_; }
  bool reduces() const { return collective::has_reduce_half(kind_); }
  bool spreads() const { return collective::has_spread_half(kind_); }
  bool exact() const { return delivery_.kind == Delivery::Kind::exact; }
  // The delivery class of the call. Its deadline is the one that the first submitting rank gave.
  const Delivery& delivery() const { return delivery_; }
  Delivery::Kind spread_delivery() const {
    const bool own = kind_ == collective::OperationKind::all_reduce || lenient_;
    return own ? spread_ : delivery_.kind;
  }
  // Returns the time from submission to the end of the reduce half, for a call with this deadline.
  Duration reduce_deadline(Duration deadline) const {
    const bool halves = kind_ == collective::OperationKind::all_reduce && !exact();
    return halves ? deadline / 2 : deadline;
  }
  // Returns true if a contribution that is not finite counts as missing from its packet.
  bool finite_only() const { return !exact() && !keep_non_finite_; }
  Estimator estimator() const { return exact() ? Estimator::ratio : estimator_; }
  ReduceOp op() const { return op_; }
  // Returns true if the scales of a packet's contributions depend only on who contributed to it.
  bool packet_scales() const;
  // Returns true if the scales also depend on delivery rates of earlier calls.
  bool estimated_rates() const {
    return delivery_.kind == Delivery::Kind::best_effort && !packet_scales();
  }
  // Returns true if owners ask again for a contribution of which no packet came.
  bool fetches_empty() const;
  // Returns true if the same block goes to all ranks, so that all must hold the same bits.
  bool agrees() const { return spreads() && !has_own_blocks(); }
  // Returns true if every receiver has a block of its own, or only one rank receives.
  bool has_own_blocks() const {
    return kind_ == collective::OperationKind::all_to_all ||
           kind_ == collective::OperationKind::gather ||
           kind_ == collective::OperationKind::scatter;
  }
  // Returns true if the sender's contribution lies in its output buffer.
  bool source_is_output() const;
  // Returns true if a sender replaces its own block by what its receivers decode.
  bool adopts() const { return agrees() && size_ > 1 && !spread_format_.identity(); }

  FlowPlan reduce_to(Rank owner) const;
  FlowPlan spread(Rank from, Rank to) const;
  FlowPlan flow(wire::FlowKind kind, Rank from, Rank to) const {
    return kind == wire::FlowKind::reduce ? reduce_to(to) : spread(from, to);
  }
  const codec::Format& reduce_format() const { return reduce_format_; }
  const codec::Format& spread_format() const { return spread_format_; }

  friend bool same_operation(const CallPlan& a, const CallPlan& b) {
    if (a.kind_ != b.kind_ || a.lengths_ != b.lengths_) return false;
    return !a.lengths_.empty() || (a.input_ == b.input_ && a.output_ == b.output_);
  }

 private:
  schedule::ShardMap shards(std::uint32_t number) const;
  std::size_t length(Rank from, Rank to) const { return lengths_[from * std::size_t(size_) + to]; }
  FlowPlan uneven_reduce_to(Rank owner) const;
  FlowPlan uneven_spread(Rank from, Rank to) const;
  schedule::PacketGrid cut(std::size_t elements, const codec::Format& format) const;

  bool covered_ = false;
  collective::OperationKind kind_ = collective::OperationKind::barrier;
  int size_ = 1;
  std::size_t payload_bytes_ = 0;
  std::size_t input_ = 0;  // elements
  std::size_t output_ = 0;
  std::vector<std::size_t> lengths_;
  // Offset of each rank's uneven block in the tensor that is summed or gathered. Empty if blocks
  // follow each other.
  std::vector<std::size_t> places_;
  bool lenient_ = false;
  Rank root_ = kNoRank;
  schedule::ShardMap shards_ = schedule::ShardMap::single(0, 0);
  codec::Format reduce_format_;
  codec::Format spread_format_;
  Delivery delivery_;
  Delivery::Kind spread_ = Delivery::Kind::exact;
  Estimator estimator_ = Estimator::ratio;
  ReduceOp op_ = ReduceOp::sum;
  bool keep_non_finite_ = false;
};

}  // namespace leeway::sim
