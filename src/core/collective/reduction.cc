#include "collective/reduction.h"

#include <cstring>

#include "codec/finite.h"
#include "codec/reduce.h"
#include "collective/noise_meter.h"
#include "collective/payload_exchange.h"

namespace leeway::collective {
namespace {

// Returns true for estimators that scale a packet by its own contributors alone. With these a
// complete packet may be reduced before the rest of the shard has come.
bool depends_on_packet_only(Estimator estimator) {
  return estimator == Estimator::zero_fill || estimator == Estimator::ratio ||
         estimator == Estimator::stratified;
}

}  // namespace

void Reduction::begin(const OperationPlan& plan, const estimate::LinkHistory& history) {
  plan_ = &plan;
  element_bytes_ = size_of(plan.dtype);
  grid_ = grid_of(plan.self);
  own_.begin(plan);
  if (stages()) staging_.reset(plan.size, grid_.packets(), plan.reduced_packet_bytes(), coded());
  if (coded()) recovery_.prepare(plan.payload_bytes);
  progress_.reset(grid_, plan.size - 1);
  scales_.begin(plan, history, grid_.packets());
  counts_.reset(plan.size);
  // A chunk may settle early only if its scales do not depend on the rest of the shard.
  passed_.reset(grid_, half().rotation_key, plan.size, plan.self,
                half().one_pass && depends_on_packet_only(half().estimator));
}

protocol::Acceptance Reduction::accept(Rank from, const wire::DataHeader& header, ByteSpan payload,
                                       std::span<const protocol::ReceiveFlow> flows,
                                       schedule::ChunkQueue& reduced) {
  const PacketIndex index = header.index;
  if (payload.size() != encoded_bytes(index)) return protocol::Acceptance::refused;
  if (progress_.is_reduced(index)) return protocol::Acceptance::late;
  scales_.on_weight(from, flows[from].weight);
  const bool last = progress_.arrive(index);
  if (plan_->payload != nullptr && plan_->contents) {
    std::memcpy(plan_->payload->place(PayloadHalf::reduce, from, index), payload.data(),
                payload.size());
  }
  const bool complete = last && (!half().lossy || depends_on_packet_only(half().estimator));
  const bool direct = complete && !coded();
  if (!direct && stages()) std::memcpy(staging_.lend(from, index), payload.data(), payload.size());
  if (complete) reduce_complete(index, direct ? Direct{from, payload.data()} : Direct{}, reduced);
  passed_.on_packet(from, header.position, [&](ChunkIndex chunk) {
    if (!progress_.is_reduced(chunk)) settle_chunk(chunk, flows, reduced);
  });
  return protocol::Acceptance::accepted;
}

bool Reduction::hold_parity(Rank from, PacketIndex index, ByteSpan payload) {
  if (payload.size() != plan_->reduced_packet_bytes()) return false;
  if (stages()) std::memcpy(staged_place(from, index).data(), payload.data(), payload.size());
  return true;
}

ByteSpan Reduction::lift_parity(Rank from, PacketIndex index) {
  return stages() ? recovery_.lift(staged_place(from, index))
                  : recovery_.lift_nothing(plan_->reduced_packet_bytes());
}

bool Reduction::recover(Rank from, const protocol::RoundClient::CodedPackets& code,
                        std::span<const protocol::ReceiveFlow> flows,
                        schedule::ChunkQueue& reduced) {
  const std::size_t packet_bytes = plan_->reduced_packet_bytes();
  if (!code.last.empty() && code.last.size() != packet_bytes) return false;
  const wire::CodeGrid codes(grid_.packets());
  if (stages()) {
    recovery_.run(codes, code, packet_bytes,
                  [&](PacketIndex index) { return staged_place(from, index); });
  }
  scales_.on_weight(from, flows[from].weight);
  for (std::uint32_t n = 0; n < code.rows.size(); ++n) {
    if (code.rows[n] == protocol::ParityLedger::kPresent) continue;
    const PacketIndex index = codes.packet(code.code, n);
    if (progress_.arrive(index)) reduce_complete(index, {}, reduced);
  }
  return true;
}

void Reduction::settle_chunk(ChunkIndex chunk, std::span<const protocol::ReceiveFlow> flows,
                             schedule::ChunkQueue& reduced) {
  scales_.tally(flows);
  scales_.build();
  for (std::uint32_t i = 0; i < grid_.chunk_size(chunk); ++i) {
    const PacketIndex index = grid_.packet_in(chunk, i);
    if (!progress_.is_reduced(index)) reduce_partial(index, flows, reduced);
  }
}

ByteSpan Reduction::contribution(Rank rank, PacketIndex index, const Direct& direct) {
  if (rank == plan_->self) return own_.to_self(index);
  return {rank == direct.rank ? direct.data : staging_.at(rank, index), encoded_bytes(index)};
}

bool Reduction::all_finite(PacketIndex index, const Direct& direct) {
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    if (!codec::all_finite(plan_->dtype, contribution(rank, index, direct))) return false;
  }
  return true;
}

// Returns true if complete packets are summed with float32 scales. A float64 average is not,
// because 1/N in float32 has only half of float64's digits. That average is summed exactly and
// divided, as integers are.
bool Reduction::sums_by_scales() const {
  const bool sums =
      half().op == ReduceOp::sum || (half().op == ReduceOp::avg && plan_->dtype != DataType::f64);
  return sums && is_floating(plan_->dtype);
}

void Reduction::reduce_complete(PacketIndex index, const Direct& direct,
                                schedule::ChunkQueue& reduced) {
  estimate::BlockScales block{static_cast<std::uint32_t>(plan_->size), false, 0.0f};
  if (!sums_by_scales() && (!half().finite_only || all_finite(index, direct))) {
    combine_exactly(index, direct);
  } else {
    block = sum(index, scales_.complete(), direct);
  }
  on_reduced(index, block, reduced);
}

void Reduction::reduce_partial(PacketIndex index, std::span<const protocol::ReceiveFlow> flows,
                               schedule::ChunkQueue& reduced) {
  on_reduced(index, sum(index, scales_.partial(index, flows), {}), reduced);
}

void Reduction::on_reduced(PacketIndex index, const estimate::BlockScales& block,
                           schedule::ChunkQueue& reduced) {
  if (block.control != 0.0f && !half().control.empty()) apply_control(index, block.control);
  counts_.on_reduced(block, grid_.packet_elements(index));
  if (stages()) staging_.give_back(index);
  progress_.reduce(index, reduced);
}

// Writes the sum of scale_i x_i over the contributions x_i, in rank order, to the result. A
// contribution of scale 0 is not read. If contributions are not finite, sums again without them.
// Returns the scales that were used: `block`, or those of the last sum.
estimate::BlockScales Reduction::sum(PacketIndex index, const estimate::BlockScales& block,
                                     const Direct& direct) {
  if (plan_->payload != nullptr) plan_->payload->set_scales(index, scales_.values());
  if (!stages()) return block;
  NoiseMeter* const meter = plan_->meter;
  const bool measured = meter != nullptr && meter->samples(index.value, grid_.packets());
  if (measured) own_.measure(index);  // before the result takes its place
  const ByteSpan own = own_.kept_to_self(index);
  estimate::BlockScales used = block;
  take_terms(index, own, direct);
  while (!sum_terms(index) && find_non_finite(index)) {
    used = scales_.without(left_out_, index, used);
    take_terms(index, own, direct);
  }
  if (meter != nullptr) meter->add_weights(scales_.moments(), grid_.packet_elements(index));
  const ByteSpan result = result_of(index);
  if (measured && plan_->is_measurable(result))
    meter->add_result(floats_of(result), plan_->result_per_unit(), scales_.moments());
  return used;
}

void Reduction::take_terms(PacketIndex index, ByteSpan own, const Direct& direct) {
  terms_.clear();
  term_ranks_.clear();
  const std::span<const float> scales = scales_.values();
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    if (scales[rank] == 0.0f) continue;
    const bool is_own = rank == plan_->self;
    const ByteSpan bytes = is_own ? own : contribution(rank, index, direct);
    terms_.push_back({bytes.data(), scales[rank], !is_own});
    term_ranks_.push_back(rank);
  }
}

// Sums `terms_` into the result. Returns false if the sum must be finite and is not.
bool Reduction::sum_terms(PacketIndex index) {
  const codec::Place place = plan_->place_of(
      plan_->self, half().shards.position(plan_->self) + grid_.packet_offset(index));
  return scaled_sum(half().format, place, plan_->dtype, terms_, grid_.packet_elements(index),
                    result_of(index), block_, half().finite_only);
}

// Puts the ranks whose terms are not finite into `left_out_`. Returns false if there are none,
// which means that the sum of finite terms overflowed.
bool Reduction::find_non_finite(PacketIndex index) {
  left_out_.clear();
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (is_finite(half().format, plan_->dtype, terms_[i], grid_.packet_elements(index), block_))
      continue;
    left_out_.push_back(term_ranks_[i]);
    counts_.on_left_out();
  }
  return !left_out_.empty();
}

// Combines contributions in rank order, in the tensor's own type: for integers, float64 averages,
// and reductions that are not sums.
void Reduction::combine_exactly(PacketIndex index, const Direct& direct) {
  // A payload sink combines by itself. All scales that it gets are 1 here.
  if (plan_->payload != nullptr) return plan_->payload->set_scales(index, scales_.values());
  if (!plan_->contents) return;
  operands_.clear();
  for (Rank rank = 0; rank < plan_->size; ++rank)
    operands_.push_back(contribution(rank, index, direct).data());
  codec::reduce(half().op, plan_->dtype, operands_, result_of(index));
}

void Reduction::settle(std::span<const protocol::ReceiveFlow> flows,
                       schedule::ChunkQueue& reduced) {
  bool complete = counts_.settle(flows, plan_->self);
  scales_.tally(flows);
  const bool needs_rates = half().lossy && !depends_on_packet_only(half().estimator);
  if (needs_rates && half().finite_only && stages()) complete &= uncount_non_finite(flows);
  if (!complete || needs_rates) scales_.build();
  // Scales that depend on delivery rates of earlier operations apply even if all packets came.
  complete &= !needs_rates || !scales_.estimated_rates();
  for (PacketIndex index; index.value < grid_.packets(); ++index) {
    if (progress_.is_reduced(index)) continue;
    complete ? reduce_complete(index, {}, reduced) : reduce_partial(index, flows, reduced);
  }
}

// Takes contributions that are not finite out of the packet counts, before any packet is scaled.
// The estimators that scale by these counts then treat them as lost packets. Returns false if there
// were some.
bool Reduction::uncount_non_finite(std::span<const protocol::ReceiveFlow> flows) {
  bool all_finite = true;
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    if (!scales_.uses(rank)) continue;  // it is not read
    for (PacketIndex index; index.value < grid_.packets(); ++index) {
      if (!scales_.has(rank, index, flows)) continue;
      const Term term{contribution(rank, index, {}).data(), 1.0f, rank != plan_->self};
      if (is_finite(half().format, plan_->dtype, term, grid_.packet_elements(index), block_))
        continue;
      scales_.uncount(rank, index);
      counts_.on_left_out();
      all_finite = false;
    }
  }
  return all_finite;
}

void Reduction::apply_control(PacketIndex index, float scale) {
  const std::size_t offset = grid_.packet_offset(index);
  auto* result = reinterpret_cast<float*>(half().result) + offset;
  const float* control = half().control.data() + offset;
  for (std::size_t i = 0; i < grid_.packet_elements(index); ++i) result[i] += scale * control[i];
}

void Reduction::fill_report(CollectiveReport& report) const {
  counts_.fill(report);
  report.owners = static_cast<std::uint32_t>(half().shards.owners());
  report.estimator = half().estimator;
}

}  // namespace leeway::collective
