#include "checker/call_plan.h"

#include "estimate/link_history.h"

namespace leeway::sim {
namespace {

using collective::OperationKind;

bool is_known(OperationKind kind) {
  switch (kind) {
    case OperationKind::all_reduce:
    case OperationKind::reduce_scatter:
    case OperationKind::all_gather:
    case OperationKind::broadcast:
    case OperationKind::all_to_all:
    case OperationKind::replica_reduce:
    case OperationKind::replica_broadcast:
    case OperationKind::gather:
    case OperationKind::scatter:
    case OperationKind::reduce:
      return true;
    default:
      return false;
  }
}

bool is_covered(const collective::OperationSpec& spec) {
  if (!is_known(spec.kind) || spec.input.dtype != DataType::f32) return false;
  if (collective::is_empty(spec)) return false;  // goes as a barrier, which has no contents
  if (collective::has_automatic_codec(spec.options)) return false;
  return spec.options.op == ReduceOp::sum || spec.options.op == ReduceOp::avg;
}

std::vector<std::size_t> places_of(const collective::OperationSpec& spec) {
  const bool gathers = spec.kind == OperationKind::all_gather;
  if (!spec.uneven() || (!gathers && spec.kind != OperationKind::reduce_scatter)) return {};
  const collective::BlockList& blocks = gathers ? spec.output_blocks : spec.input_blocks;
  std::vector<std::size_t> places;
  for (Rank rank = 0; rank < blocks.size(); ++rank) places.push_back(blocks.offset(rank));
  return places;
}

}  // namespace

CallPlan::CallPlan(const collective::OperationSpec& spec, const protocol::EndpointConfig& config,
                   std::uint32_t number, std::span<const std::size_t> lengths)
    : covered_(is_covered(spec)),
      kind_(spec.kind),
      size_(config.size),
      payload_bytes_(config.datagram_bytes - wire::kDataHeaderBytes),
      input_(spec.input.count),
      output_(spec.output.count),
      lengths_(lengths.begin(), lengths.end()),
      places_(places_of(spec)),
      lenient_(spec.lenient),
      root_(spec.peer),
      delivery_(spec.options.delivery),
      spread_(spec.options.spread),
      estimator_(spec.options.estimator),
      op_(spec.options.op),
      keep_non_finite_(spec.options.keep_non_finite) {
  if (!covered_) return;
  const auto purpose = reduces() ? codec::Purpose::sum : codec::Purpose::copy;
  const CodecOptions& codec = spec.options.codec;
  reduce_format_ = codec::format_of(codec, DataType::f32, purpose);
  spread_format_ = codec::format_of(reduces() ? spec.options.spread_codec.value_or(codec) : codec,
                                    DataType::f32, purpose);
  shards_ = shards(number);
}

schedule::ShardMap CallPlan::shards(std::uint32_t number) const {
  if (kind_ == OperationKind::reduce_scatter) return schedule::ShardMap::blocks(output_, size_);
  if (kind_ == OperationKind::reduce) return schedule::ShardMap::single(output_, root_);
  if (kind_ != OperationKind::all_reduce) return schedule::ShardMap::even(output_, size_);
  const std::size_t fitting = std::max(reduce_format_.elements_for(payload_bytes_),
                                       spread_format_.elements_for(payload_bytes_));
  return schedule::ShardMap::few(output_, size_, fitting, number);
}

bool CallPlan::packet_scales() const {
  return exact() || estimator_ == Estimator::zero_fill || estimator_ == Estimator::ratio ||
         estimator_ == Estimator::stratified;
}

bool CallPlan::fetches_empty() const {
  const bool by_link =
      estimator_ == Estimator::horvitz_thompson || estimator_ == Estimator::augmented;
  if (!reduces() || !by_link || delivery_.kind != Delivery::Kind::best_effort) return false;
  if (kind_ == OperationKind::all_reduce) return true;
  std::uint32_t longest = 0;
  for (Rank owner = 0; owner < size_; ++owner)
    longest = std::max(longest, reduce_to(owner).grid.packets());
  return longest < estimate::kShortFlowPackets;
}

bool CallPlan::source_is_output() const {
  return kind_ == OperationKind::broadcast || kind_ == OperationKind::replica_broadcast;
}

schedule::PacketGrid CallPlan::cut(std::size_t elements, const codec::Format& format) const {
  const std::size_t per_packet = format.elements_for(payload_bytes_);
  return {elements, static_cast<std::uint32_t>(per_packet), sizeof(float)};
}

// A flow's position is part of the key of random draws. It follows from the lengths of the blocks
// before, wherever these blocks lie in the buffer.
FlowPlan CallPlan::uneven_reduce_to(Rank owner) const {
  FlowPlan plan;
  for (Rank before = 0; before < owner; ++before) {
    plan.source += length(before, before);
    plan.position = schedule::ShardMap::position_behind(plan.position, length(before, before));
  }
  if (reduces() && !places_.empty()) plan.source = places_[owner];
  plan.grid = cut(reduces() ? length(owner, owner) : 0, reduce_format_);
  return plan;
}

// An empty block comes as an empty packet, so that its receiver hears of it. In an all_gather all
// ranks know the lengths, so an empty block needs no packet.
FlowPlan CallPlan::uneven_spread(Rank from, Rank to) const {
  FlowPlan plan{.grid = cut(length(from, to), spread_format_)};
  if (kind_ == OperationKind::reduce_scatter) return {.grid = cut(0, spread_format_)};
  if (kind_ == OperationKind::all_to_all) {
    plan.grid = plan.grid.with_empty_packet();
    for (Rank before = 0; before < to; ++before) plan.source += length(from, before);
  }
  for (Rank before = 0; before < from; ++before) plan.result += length(before, to);
  if (!places_.empty()) plan.result = places_[from];
  return plan;
}

FlowPlan CallPlan::reduce_to(Rank owner) const {
  if (!lengths_.empty()) return uneven_reduce_to(owner);
  const schedule::Shard shard = reduces() ? shards_[owner] : schedule::Shard{};
  const bool apart = kind_ == OperationKind::reduce_scatter;
  return {.grid = cut(shard.count, reduce_format_),
          .source = shard.offset,
          .result = apart ? 0 : shard.offset,
          .position = shards_.position(owner)};
}

FlowPlan CallPlan::spread(Rank from, Rank to) const {
  if (!lengths_.empty()) return uneven_spread(from, to);
  const auto plan = [&](std::size_t elements, std::size_t source, std::size_t result,
                        std::uint64_t position) {
    return FlowPlan{cut(elements, spread_format_), source, result, position};
  };
  switch (kind_) {
    case OperationKind::all_reduce:
    case OperationKind::replica_broadcast: {
      const schedule::Shard shard = shards_[from];
      return plan(shard.count, shard.offset, shard.offset, shard.offset);
    }
    case OperationKind::all_gather:
      return plan(input_, 0, from * input_, 0);
    case OperationKind::broadcast:
      return plan(from == root_ ? output_ : 0, 0, 0, 0);
    case OperationKind::gather:
      return plan(to == root_ ? input_ : 0, 0, from * input_, 0);
    case OperationKind::scatter:
      return plan(from == root_ ? output_ : 0, to * output_, 0, 0);
    case OperationKind::all_to_all: {
      const std::size_t block = input_ / static_cast<std::size_t>(size_);
      return plan(block, to * block, from * block, 0);
    }
    default:
      return plan(0, 0, 0, 0);
  }
}

}  // namespace leeway::sim
