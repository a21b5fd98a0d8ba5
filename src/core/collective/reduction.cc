#include "collective/reduction.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/contracts.h"
#include "base/crc32c.h"
#include "codec/finite.h"
#include "codec/reduce.h"
#include "collective/payload_exchange.h"

namespace leeway::collective {
namespace {

// Returns true for estimators whose scale of a packet depends only on that packet's contributors.
// Then complete packets may be reduced before the rest of the shard is known.
bool depends_on_packet_only(Estimator estimator) {
  return estimator == Estimator::zero_fill || estimator == Estimator::ratio ||
         estimator == Estimator::stratified;
}

// Noise is measured, and residuals are kept, only for float32.
std::span<const float> floats_of(ByteSpan bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

void Reduction::begin(const OperationPlan& plan, const estimate::LinkHistory& history) {
  plan_ = &plan;
  element_bytes_ = size_of(plan.dtype);
  own_ = half().shards[plan.self];
  grid_ = grid_of(plan.self);
  input_ = half().input;
  multiplies_ = half().factor.has_value();
  if (plan.contents && plan.payload == nullptr) {
    staging_.reset(plan.size, grid_.packets(), packet_bytes(), coded());
    take_input();
    if (multiplies_ || half().finite_only)
      own_packet_.reserve(grid_.elements_per_packet() * element_bytes_);
  }
  if (coded()) prepare_code();
  missing_.assign(grid_.packets(), static_cast<std::uint16_t>(plan.size - 1));
  reduced_packets_.resize(grid_.packets());
  chunk_left_.resize(grid_.chunks());
  for (ChunkIndex c; c.value < grid_.chunks(); ++c) chunk_left_[c.value] = grid_.chunk_size(c);
  scale_plan_built_ = false;
  scales_.assign(plan.size, 1.0f);
  weights_.assign(plan.size, std::numeric_limits<float>::quiet_NaN());
  weights_[plan.self] = own_weight();
  recall_rates(history);
  mask_.assign((plan.size + 63) / 64, 0);
  settles_passed_chunks_ = half().one_pass && plan.size > 1 && grid_.chunks() > 2 &&
                           depends_on_packet_only(half().estimator);
  start_ = schedule::PacketCursor::start_of(grid_, half().rotation_key);
  passed_.assign(plan.size, 0);
  settled_chunks_ = 0;
  contributors_ = {};
  contributors_.histogram.assign(plan.size + 1, 0);
  untouched_ = non_finite_ = 0;
  nobody_has_units_ = false;
  uncounted_.resize(0);
  fetched_ = unheard_ = 0;
}

void Reduction::prepare_code() {
  recovery_.prepare(plan_->payload_bytes);
  if (!plan_->contents) return;
  parities_.resize(plan_->size);
  kept_from_.resize(plan_->size);
  std::size_t bytes = 0;
  for (Rank owner = 0; owner < plan_->size; ++owner) {
    const std::uint32_t packets = grid_of(owner).packets();
    if (owner == plan_->self || packets == 0) continue;
    parities_[owner].reset(packets, packet_bytes());
    kept_from_[owner] = bytes;
    bytes += packets * packet_bytes();
  }
  if (!half().format.identity()) kept_.reserve(bytes);
}

MutableByteSpan Reduction::kept_place(Rank owner, const schedule::PacketGrid& grid,
                                      PacketIndex index) {
  return {kept_.data() + kept_from_[owner] + index.value * packet_bytes(),
          half().format.encoded_bytes(grid.packet_elements(index))};
}

// Only a best-effort operation loses packets for which the rates make up. The others ask until they
// have them.
void Reduction::recall_rates(const estimate::LinkHistory& history) {
  tallies_.assign(plan_->size, {});
  if (!half().one_pass) return;
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    tallies_[rank].prior_rate = history.delivery_rate(rank);
    tallies_[rank].heard_rate = history.heard_rate(rank, grid_.packets());
  }
}

// Small inputs are copied, so that the caller's memory is soon free. With error feedback a
// contribution is the input plus the residual of earlier calls.
void Reduction::take_input() {
  if (!half().copy_input && half().residual.empty()) return;
  const std::size_t bytes = half().shards.count() * element_bytes_;
  copied_input_.reserve(bytes);
  const MutableByteSpan copy(copied_input_.data(), bytes);
  if (multiplies_) {
    codec::multiply(plan_->dtype, *half().factor, {input_, bytes}, copy);
  } else if (bytes > 0) {
    std::memcpy(copy.data(), input_, bytes);
  }
  multiplies_ = false;
  input_ = copied_input_.data();
  for (Rank owner = 0; owner < plan_->size; ++owner) {
    if (pays_residual(owner)) add_residual(owner);
  }
}

// An owner for which our contribution has weight 0 uses none of it. The residual for it waits for a
// call in which we have units of work for it.
bool Reduction::pays_residual(Rank owner) const {
  if (half().residual.empty()) return false;
  return half().op != ReduceOp::avg || plan_->round.weight_for(owner) != 0.0;
}

void Reduction::add_residual(Rank owner) {
  const schedule::Shard shard = half().shards[owner];
  const auto owed = half().residual.subspan(shard.offset, shard.count);
  auto* values = reinterpret_cast<float*>(copied_input_.data()) + shard.offset;
  for (std::size_t i = 0; i < owed.size(); ++i) values[i] += owed[i];
  // Data that is not encoded leaves no residual: our own contribution to our shard, and everything
  // under an identical format.
  if (owner == plan_->self || half().format.identity()) std::fill(owed.begin(), owed.end(), 0.0f);
}

codec::Place Reduction::place_of(Rank source, Rank owner, const schedule::PacketGrid& grid,
                                 PacketIndex index) const {
  return {plan_->seed, plan_->step, source,
          half().shards.position(owner) + grid.packet_offset(index)};
}

ByteSpan Reduction::input_to(Rank owner, const schedule::PacketGrid& grid,
                             PacketIndex index) const {
  const std::size_t first = half().shards[owner].offset + grid.packet_offset(index);
  return {input_ + first * element_bytes_, grid.packet_elements(index) * element_bytes_};
}

// A packet's products are made when the packet is, in the first-level cache. A copy of the whole
// tensor would be another pass over memory.
ByteSpan Reduction::contribution_to(Rank owner, const schedule::PacketGrid& grid, PacketIndex index,
                                    std::byte* memory) const {
  const ByteSpan source = input_to(owner, grid, index);
  if (!multiplies_) return source;
  const MutableByteSpan products(memory, source.size());
  codec::multiply(plan_->dtype, *half().factor, source, products);
  return products;
}

protocol::Payload Reduction::payload(Rank owner, PacketIndex index, PacketIndex ahead,
                                     MutableByteSpan scratch) {
  const schedule::PacketGrid grid = grid_of(owner);
  if (!plan_->contents)
    return {scratch.first(half().format.encoded_bytes(grid.packet_elements(index)))};
  if (plan_->payload != nullptr) return encoded_elsewhere(owner, index);
  const bool identity = half().format.identity();
  const ByteSpan source =
      contribution_to(owner, grid, index, identity ? scratch.data() : own_packet_.data());
  if (identity) {
    if (!plan_->sums_to(owner)) return {source};
    return {source, crc32c_prefetching(source, input_to(owner, grid, ahead))};
  }
  const MutableByteSpan out =
      coded() ? kept_place(owner, grid, index)
              : scratch.first(half().format.encoded_bytes(grid.packet_elements(index)));
  codec::Place place = place_of(plan_->self, owner, grid, index);
  place.ahead = input_to(owner, grid, ahead).data();
  codec::encode_elements(half().format, source, place, out);
  if (plan_->meter != nullptr && plan_->meter->samples(index.value, grid.packets())) {
    const double weight = plan_->round.weight_for(owner);
    if (weight > 0.0 && is_measurable(source))
      plan_->meter->add_encoded(half().format, place, floats_of(source), out, per_unit(weight));
  }
  if (pays_residual(owner)) keep_residual(floats_of(source), place, out);
  return {out, plan_->sums_to(owner) ? crc32c(out) : 0};
}

protocol::Payload Reduction::encoded_elsewhere(Rank owner, PacketIndex index) const {
  const ByteSpan bytes = plan_->payload->packet(PayloadHalf::reduce, owner, index);
  return {bytes, plan_->sums_to(owner) ? crc32c(bytes) : 0};
}

// Keeps the part of these values that encoding loses. A resent packet has the same bytes, so this
// may happen twice.
void Reduction::keep_residual(std::span<const float> values, const codec::Place& place,
                              ByteSpan encoded) {
  const auto first =
      static_cast<std::size_t>(values.data() - reinterpret_cast<const float*>(input_));
  const auto residual = half().residual.subspan(first, values.size());
  codec::decode(half().format, encoded, place, residual);
  // A difference that is not finite is dropped: it would spoil all later contributions.
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float left_out = values[i] - residual[i];
    residual[i] = std::isfinite(left_out) ? left_out : 0.0f;
  }
}

protocol::Acceptance Reduction::accept(Rank from, const wire::DataHeader& header, ByteSpan payload,
                                       std::span<const protocol::ReceiveFlow> flows,
                                       schedule::ChunkQueue& reduced) {
  const PacketIndex index = header.index;
  if (payload.size() != encoded_bytes(index)) return protocol::Acceptance::refused;
  if (reduced_packets_.test(index.value)) return protocol::Acceptance::late;
  weights_[from] = flows[from].weight;
  const bool last = --missing_[index.value] == 0;
  if (plan_->payload != nullptr && plan_->contents) {
    std::memcpy(plan_->payload->place(PayloadHalf::reduce, from, index), payload.data(),
                payload.size());
  }
  const bool complete = last && (!half().lossy || depends_on_packet_only(half().estimator));
  const bool direct = complete && !coded();
  if (!direct && stages()) std::memcpy(staging_.lend(from, index), payload.data(), payload.size());
  if (complete) reduce_complete(index, direct ? Direct{from, payload.data()} : Direct{}, reduced);
  if (settles_passed_chunks_) note_progress(from, header.position, flows, reduced);
  return protocol::Acceptance::accepted;
}

protocol::Payload Reduction::parity(Rank owner, wire::ParityPlace place, MutableByteSpan scratch) {
  if (!plan_->contents) return {scratch.first(packet_bytes())};
  const schedule::PacketGrid grid = grid_of(owner);
  return parities_[owner].payload(place, scratch, plan_->sums_to(owner),
                                  [&](PacketIndex index) -> ByteSpan {
                                    if (half().format.identity())
                                      return input_to(owner, grid, index);
                                    return kept_place(owner, grid, index);
                                  });
}

bool Reduction::hold_parity(Rank from, PacketIndex index, ByteSpan payload) {
  if (payload.size() != packet_bytes()) return false;
  if (stages()) std::memcpy(staged_place(from, index).data(), payload.data(), payload.size());
  return true;
}

ByteSpan Reduction::lift_parity(Rank from, PacketIndex index) {
  return stages() ? recovery_.lift(staged_place(from, index))
                  : recovery_.lift_nothing(packet_bytes());
}

bool Reduction::recover(Rank from, const protocol::RoundClient::CodedPackets& code,
                        std::span<const protocol::ReceiveFlow> flows,
                        schedule::ChunkQueue& reduced) {
  if (!code.last.empty() && code.last.size() != packet_bytes()) return false;
  const wire::CodeGrid codes(grid_.packets());
  if (stages()) {
    recovery_.run(codes, code, packet_bytes(),
                  [&](PacketIndex index) { return staged_place(from, index); });
  }
  weights_[from] = flows[from].weight;
  for (std::uint32_t n = 0; n < code.rows.size(); ++n) {
    if (code.rows[n] == protocol::ParityLedger::kPresent) continue;
    const PacketIndex index = codes.packet(code.code, n);
    if (--missing_[index.value] == 0) reduce_complete(index, {}, reduced);
  }
  return true;
}

// Chunks in the senders' common cyclic order. The one they start in is split into the first and the
// last part, and counts as last. `nth` 0 is the chunk after it.
ChunkIndex Reduction::passed_chunk(std::uint32_t nth) const {
  return {(grid_.chunk_of(start_).value + 1 + nth) % grid_.chunks()};
}

// Number of chunks of that order that a sender has passed, if its packet at this position arrived.
// A chunk's worth of packets is left for those that were overtaken.
std::uint32_t Reduction::chunks_passed(PacketPosition position) const {
  const ChunkIndex first = grid_.chunk_of(start_);
  const std::uint32_t first_part =
      grid_.chunk_begin(first).value + grid_.chunk_size(first) - start_.value;
  if (position.value < first_part + grid_.chunk_packets()) return 0;
  const PacketIndex at{(start_.value + position.value - grid_.chunk_packets()) % grid_.packets()};
  return (grid_.chunk_of(at).value + grid_.chunks() - first.value - 1) % grid_.chunks();
}

// Under best effort a chunk is settled when every sender has passed it: packets that are missing
// then will not come. So the spread runs beside the reduction under loss too, and results leave
// while they are in the cache (16 MiB, 4 ranks, 10 % loss: 1.12 of the loss-free time instead of
// 1.6). Only for estimators that need not know the rest of the shard.
void Reduction::note_progress(Rank from, PacketPosition position,
                              std::span<const protocol::ReceiveFlow> flows,
                              schedule::ChunkQueue& reduced) {
  const std::uint32_t passed = chunks_passed(position);
  if (passed <= passed_[from]) return;
  passed_[from] = passed;
  std::uint32_t by_all = passed;
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    if (rank != plan_->self) by_all = std::min(by_all, passed_[rank]);
  }
  for (; settled_chunks_ < by_all; ++settled_chunks_) {
    const ChunkIndex chunk = passed_chunk(settled_chunks_);
    if (chunk_left_[chunk.value] > 0) settle_chunk(chunk, flows, reduced);
  }
}

void Reduction::settle_chunk(ChunkIndex chunk, std::span<const protocol::ReceiveFlow> flows,
                             schedule::ChunkQueue& reduced) {
  tally(flows);
  build_plan(tallies_);
  for (std::uint32_t i = 0; i < grid_.chunk_size(chunk); ++i) {
    const PacketIndex index = grid_.packet_in(chunk, i);
    if (!reduced_packets_.test(index.value)) reduce_partial(index, flows, reduced);
  }
  scale_plan_built_ = false;  // complete packets ask for their own scales again
}

void Reduction::build_plan(std::span<const estimate::LinkTally> tallies) {
  scale_plan_ =
      estimate::ScalePlan({.estimator = half().lossy ? half().estimator : Estimator::ratio,
                           .op = half().op,
                           .links = tallies,
                           .owner = plan_->self,
                           .external_control = !half().control.empty(),
                           .seed = plan_->seed,
                           .step = plan_->step});
}

ByteSpan Reduction::contribution(Rank rank, PacketIndex index, const Direct& direct) {
  if (rank == plan_->self) return contribution_to(rank, grid_, index, own_packet_.data());
  return {rank == direct.rank ? direct.data : staging_.at(rank, index), encoded_bytes(index)};
}

ByteSpan Reduction::kept_contribution(PacketIndex index) {
  const ByteSpan own = contribution(plan_->self, index, {});
  if (!half().finite_only || own.data() != result_of(index)) return own;
  std::memcpy(own_packet_.data(), own.data(), own.size());
  return {own_packet_.data(), own.size()};
}

bool Reduction::is_measurable(ByteSpan values) const {
  return !half().finite_only || codec::all_finite(plan_->dtype, values);
}

bool Reduction::all_finite(PacketIndex index, const Direct& direct) {
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    if (!codec::all_finite(plan_->dtype, contribution(rank, index, direct))) return false;
  }
  return true;
}

// Returns true if complete packets are summed as scaled floats. A float64 average is not: 1/N as a
// float would cost it half of its digits. It is summed and divided, like integers.
bool Reduction::sums_by_scales() const {
  const bool sums =
      half().op == ReduceOp::sum || (half().op == ReduceOp::avg && plan_->dtype != DataType::f64);
  return sums && is_floating(plan_->dtype);
}

// Every contribution to the packet is here, so its scales do not depend on other losses.
void Reduction::reduce_complete(PacketIndex index, const Direct& direct,
                                schedule::ChunkQueue& reduced) {
  estimate::BlockScales block{static_cast<std::uint32_t>(plan_->size), false, 0.0f};
  if (!sums_by_scales() && (!half().finite_only || all_finite(index, direct))) {
    combine_exactly(index, direct);
  } else {
    if (!scale_plan_built_) {
      for (Rank rank = 0; rank < plan_->size; ++rank) {
        tallies_[rank].sent = tallies_[rank].arrived = std::max<std::uint32_t>(grid_.packets(), 1);
        tallies_[rank].weight = weights_[rank];
      }
      build_plan(tallies_);
      nobody_has_units_ = scale_plan_.complete_scales(scales_).untouched;
      if (plan_->meter != nullptr) scale_moments_ = scale_plan_.complete_moments();
      scale_plan_built_ = true;
    }
    block.untouched = nobody_has_units_;
    block = sum(index, block, direct);
  }
  on_reduced(index, block, reduced);
}

void Reduction::on_reduced(PacketIndex index, const estimate::BlockScales& block,
                           schedule::ChunkQueue& reduced) {
  if (block.untouched) untouched_ += grid_.packet_elements(index);
  if (block.control != 0.0f && !half().control.empty()) apply_control(index, block.control);
  ++contributors_.histogram[block.contributors];
  reduced_packets_.set(index.value);
  if (stages()) staging_.give_back(index);
  const ChunkIndex chunk = grid_.chunk_of(index);
  if (--chunk_left_[chunk.value] == 0) reduced.push(chunk);
}

// result = sum of scale_i x_i in rank order, for the scales in `scales_`. A zero scale means
// absent. Returns the contributors and scales that were used: `block`, unless contributions had to
// be left out.
estimate::BlockScales Reduction::sum(PacketIndex index, const estimate::BlockScales& block,
                                     const Direct& direct) {
  if (plan_->payload != nullptr) plan_->payload->set_scales(index, scales_);
  if (!stages()) return block;
  const bool measured =
      plan_->meter != nullptr && plan_->meter->samples(index.value, grid_.packets());
  if (measured) measure_own(index);  // before the result takes its place
  const ByteSpan own = kept_contribution(index);
  estimate::BlockScales used = block;
  take_terms(index, own, direct);
  while (!sum_terms(index) && leave_out_non_finite(index, used)) {
    used = scale_plan_.scales(mask_, index.value, scales_);
    if (plan_->meter != nullptr) scale_moments_ = scale_plan_.moments(scales_, used.control);
    scale_plan_built_ = false;  // complete packets ask for their own scales again
    take_terms(index, own, direct);
  }
  const std::size_t bytes = grid_.packet_elements(index) * element_bytes_;
  const ByteSpan result{result_of(index), bytes};
  if (plan_->meter != nullptr)
    plan_->meter->add_weights(scale_moments_, grid_.packet_elements(index));
  if (measured && is_measurable(result))
    plan_->meter->add_result(floats_of(result), result_per_unit(), scale_moments_);
  return used;
}

void Reduction::take_terms(PacketIndex index, ByteSpan own, const Direct& direct) {
  terms_.clear();
  term_ranks_.clear();
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    if (scales_[rank] == 0.0f) continue;
    const bool is_own = rank == plan_->self;
    const ByteSpan bytes = is_own ? own : contribution(rank, index, direct);
    terms_.push_back({bytes.data(), scales_[rank], !is_own});
    term_ranks_.push_back(rank);
  }
}

// Returns false if the sum must be finite and is not.
bool Reduction::sum_terms(PacketIndex index) {
  const std::size_t elements = grid_.packet_elements(index);
  return scaled_sum(half().format, place_of(plan_->self, plan_->self, grid_, index), plan_->dtype,
                    terms_, elements, {result_of(index), elements * element_bytes_}, block_,
                    half().finite_only);
}

// Takes contributions that are not finite out of `mask_`, the set of contributions that are here.
// Returns false if all are finite, so that their sum left the type's range.
bool Reduction::leave_out_non_finite(PacketIndex index, const estimate::BlockScales& block) {
  if (block.contributors == static_cast<std::uint32_t>(plan_->size)) {
    for (Rank rank = 0; rank < plan_->size; ++rank)
      mask_[rank / 64] |= std::uint64_t{1} << (rank % 64);
  }
  const std::uint64_t before = non_finite_;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (is_finite(half().format, plan_->dtype, terms_[i], grid_.packet_elements(index), block_))
      continue;
    mask_[term_ranks_[i] / 64] &= ~(std::uint64_t{1} << (term_ranks_[i] % 64));
    ++non_finite_;
  }
  return non_finite_ != before;
}

void Reduction::measure_own(PacketIndex index) {
  const double weight = plan_->round.weight_for(plan_->self);
  if (weight <= 0.0) return;
  const ByteSpan own = contribution(plan_->self, index, {});
  if (!is_measurable(own)) return;
  plan_->meter->add_own(floats_of(own), per_unit(weight));
  if (half().control.empty()) return;
  const auto control =
      half().control.subspan(grid_.packet_offset(index), grid_.packet_elements(index));
  plan_->meter->add_control(floats_of(own), per_unit(weight), control, result_per_unit());
}

// Combines integer types, float64 averages, and reductions that are not sums, in rank order, in the
// tensor's own type.
void Reduction::combine_exactly(PacketIndex index, const Direct& direct) {
  // All factors are 1.
  if (plan_->payload != nullptr) return plan_->payload->set_scales(index, scales_);
  if (!plan_->contents) return;
  operands_.clear();
  for (Rank rank = 0; rank < plan_->size; ++rank)
    operands_.push_back(contribution(rank, index, direct).data());
  codec::reduce(half().op, plan_->dtype, operands_,
                {half().result + grid_.packet_offset(index) * element_bytes_,
                 grid_.packet_elements(index) * element_bytes_});
}

void Reduction::settle(std::span<const protocol::ReceiveFlow> flows,
                       schedule::ChunkQueue& reduced) {
  bool complete = true;
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    const protocol::ReceiveFlow& flow = flows[rank];
    if (rank == plan_->self || flow.packets == 0) continue;
    complete &= flow.complete();
    unheard_ += flow.arrived_count == 0;
    fetched_ += flow.arrived_count > 0 && flow.arrived_count == flow.repaired;
  }
  tally(flows);
  const bool needs_rates = half().lossy && !depends_on_packet_only(half().estimator);
  if (needs_rates && half().finite_only && stages()) complete &= uncount_non_finite(flows);
  if (!complete || needs_rates) build_plan(tallies_);
  // A weight that depends on an estimated rate applies whether or not packets were lost here.
  complete &= !needs_rates || !scale_plan_.estimated_rates();
  for (PacketIndex index; index.value < grid_.packets(); ++index) {
    if (reduced_packets_.test(index.value)) continue;
    complete ? reduce_complete(index, {}, reduced) : reduce_partial(index, flows, reduced);
  }
}

bool Reduction::is_here(Rank rank, PacketIndex index,
                        std::span<const protocol::ReceiveFlow> flows) const {
  if (uncounted_.size() > 0 && uncounted_.test(rank * grid_.packets() + index.value)) return false;
  return rank == plan_->self || flows[rank].arrived.test(index.value);
}

// For estimators whose scales depend on the counts of links: takes contributions that are not
// finite out of these counts before any packet is scaled. A link then makes up for them as for lost
// packets. Returns false if there were some.
bool Reduction::uncount_non_finite(std::span<const protocol::ReceiveFlow> flows) {
  const std::uint64_t before = non_finite_;
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    if (half().op == ReduceOp::avg && tallies_[rank].weight == 0.0) continue;  // not read
    for (PacketIndex index; index.value < grid_.packets(); ++index) {
      if (!is_here(rank, index, flows)) continue;
      const Term term{contribution(rank, index, {}).data(), 1.0f, rank != plan_->self};
      if (is_finite(half().format, plan_->dtype, term, grid_.packet_elements(index), block_))
        continue;
      if (uncounted_.size() == 0) uncounted_.resize(std::size_t{grid_.packets()} * plan_->size);
      uncounted_.set(rank * grid_.packets() + index.value);
      --tallies_[rank].arrived;
      ++non_finite_;
    }
  }
  return non_finite_ == before;
}

void Reduction::tally(std::span<const protocol::ReceiveFlow> flows) {
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    estimate::LinkTally& tally = tallies_[rank];
    const bool own = rank == plan_->self;
    tally.sent = std::max<std::uint32_t>(grid_.packets(), 1);
    tally.arrived = own ? tally.sent : flows[rank].arrived_count;
    tally.weight = weights_[rank] = own ? own_weight() : flows[rank].weight;
  }
}

void Reduction::reduce_partial(PacketIndex index, std::span<const protocol::ReceiveFlow> flows,
                               schedule::ChunkQueue& reduced) {
  std::fill(mask_.begin(), mask_.end(), 0);
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    mask_[rank / 64] |= std::uint64_t{is_here(rank, index, flows)} << (rank % 64);
  }
  const estimate::BlockScales block = scale_plan_.scales(mask_, index.value, scales_);
  if (plan_->meter != nullptr) scale_moments_ = scale_plan_.moments(scales_, block.control);
  on_reduced(index, sum(index, block, {}), reduced);
}

void Reduction::apply_control(PacketIndex index, float scale) {
  const std::size_t offset = grid_.packet_offset(index);
  auto* result = reinterpret_cast<float*>(half().result) + offset;
  const float* control = half().control.data() + offset;
  for (std::size_t i = 0; i < grid_.packet_elements(index); ++i) result[i] += scale * control[i];
}

void Reduction::fill_report(CollectiveReport& report) const {
  report.contributors = contributors_;
  report.owners = static_cast<std::uint32_t>(half().shards.owners());
  std::uint64_t packets = 0;
  std::uint64_t contributions = 0;
  for (std::size_t k = 0; k < contributors_.histogram.size(); ++k) {
    packets += contributors_.histogram[k];
    contributions += k * contributors_.histogram[k];
  }
  report.contributors.min = static_cast<std::uint32_t>(plan_->size);
  for (std::size_t k = contributors_.histogram.size(); k-- > 0;) {
    if (contributors_.histogram[k] > 0) report.contributors.min = static_cast<std::uint32_t>(k);
  }
  report.contributors.mean =
      packets == 0 ? plan_->size
                   : static_cast<double>(contributions) / static_cast<double>(packets);
  report.elements_untouched = untouched_;
  report.non_finite = non_finite_;
  const bool lossless = contributors_.histogram.back() == packets;
  report.variance_estimate = lossless ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  report.estimator = half().estimator;
  report.contributions_fetched = fetched_;
  report.contributions_missing = unheard_;
}

double Reduction::units() const {
  double sum = 0.0;
  for (const float weight : weights_) sum += std::isnan(weight) ? 0.0 : weight;
  return sum;
}

}  // namespace leeway::collective
