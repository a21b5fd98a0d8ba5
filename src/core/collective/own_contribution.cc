#include "collective/own_contribution.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/contracts.h"
#include "base/crc32c.h"
#include "codec/reduce.h"
#include "collective/noise_meter.h"
#include "collective/payload_exchange.h"

namespace leeway::collective {

void OwnContribution::begin(const OperationPlan& plan) {
  plan_ = &plan;
  element_bytes_ = size_of(plan.dtype);
  own_grid_ = plan.reduced_grid(plan.self);
  input_ = half().input;
  multiplies_ = half().factor.has_value();
  if (plan.contents && plan.payload == nullptr) {
    take_input();
    if (multiplies_ || half().finite_only)
      packet_.reserve(own_grid_.elements_per_packet() * element_bytes_);
  }
  if (plan.contents && coded()) prepare_parity();
}

void OwnContribution::prepare_parity() {
  parities_.resize(plan_->size);
  kept_from_.resize(plan_->size);
  const std::size_t packet_bytes = plan_->reduced_packet_bytes();
  std::size_t bytes = 0;
  for (Rank owner = 0; owner < plan_->size; ++owner) {
    const std::uint32_t packets = plan_->reduced_grid(owner).packets();
    if (owner == plan_->self || packets == 0) continue;
    parities_[owner].reset(packets, packet_bytes);
    kept_from_[owner] = bytes;
    bytes += packets * packet_bytes;
  }
  if (!half().format.identity()) kept_.reserve(bytes);
}

MutableByteSpan OwnContribution::kept_place(Rank owner, const schedule::PacketGrid& grid,
                                            PacketIndex index) {
  return {kept_.data() + kept_from_[owner] + index.value * plan_->reduced_packet_bytes(),
          half().format.encoded_bytes(grid.packet_elements(index))};
}

// Copies the input in two cases: if it is small, so that the caller may soon overwrite it, or if a
// residual must be added to it (error feedback).
void OwnContribution::take_input() {
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

// Returns true if the owner's part of the residual is added to our contribution. If the weight is
// 0, the owner ignores our contribution to an average. That part of the residual is then left for a
// later call.
bool OwnContribution::pays_residual(Rank owner) const {
  if (half().residual.empty()) return false;
  return half().op != ReduceOp::avg || plan_->round.weight_for(owner) != 0.0;
}

void OwnContribution::add_residual(Rank owner) {
  const schedule::Shard shard = half().shards[owner];
  const auto owed = half().residual.subspan(shard.offset, shard.count);
  auto* values = reinterpret_cast<float*>(copied_input_.data()) + shard.offset;
  for (std::size_t i = 0; i < owed.size(); ++i) values[i] += owed[i];
  // Values that are not encoded (our own shard, or an identity format) lose nothing, so no residual
  // is left.
  if (owner == plan_->self || half().format.identity()) std::fill(owed.begin(), owed.end(), 0.0f);
}

ByteSpan OwnContribution::input_to(Rank owner, const schedule::PacketGrid& grid,
                                   PacketIndex index) const {
  const std::size_t first = half().shards[owner].offset + grid.packet_offset(index);
  return {input_ + first * element_bytes_, grid.packet_elements(index) * element_bytes_};
}

// Multiplies one packet by the factor, in the first-level cache. To multiply the whole tensor first
// would be another pass over memory.
ByteSpan OwnContribution::contribution_to(Rank owner, const schedule::PacketGrid& grid,
                                          PacketIndex index, std::byte* memory) const {
  const ByteSpan source = input_to(owner, grid, index);
  if (!multiplies_) return source;
  const MutableByteSpan products(memory, source.size());
  codec::multiply(plan_->dtype, *half().factor, source, products);
  return products;
}

protocol::Payload OwnContribution::payload(Rank owner, PacketIndex index, PacketIndex ahead,
                                           MutableByteSpan scratch) {
  const schedule::PacketGrid grid = plan_->reduced_grid(owner);
  if (!plan_->contents)
    return {scratch.first(half().format.encoded_bytes(grid.packet_elements(index)))};
  if (plan_->payload != nullptr) {
    const ByteSpan bytes = plan_->payload->packet(PayloadHalf::reduce, owner, index);
    return {bytes, plan_->sums_to(owner) ? crc32c(bytes) : 0};
  }
  const bool identity = half().format.identity();
  const ByteSpan source =
      contribution_to(owner, grid, index, identity ? scratch.data() : packet_.data());
  if (identity) {
    if (!plan_->sums_to(owner)) return {source};
    return {source, crc32c_prefetching(source, input_to(owner, grid, ahead))};
  }
  const MutableByteSpan out =
      coded() ? kept_place(owner, grid, index)
              : scratch.first(half().format.encoded_bytes(grid.packet_elements(index)));
  codec::Place place =
      plan_->place_of(plan_->self, half().shards.position(owner) + grid.packet_offset(index));
  place.ahead = input_to(owner, grid, ahead).data();
  codec::encode_elements(half().format, source, place, out);
  if (plan_->meter != nullptr && plan_->meter->samples(index.value, grid.packets())) {
    const double weight = plan_->round.weight_for(owner);
    if (weight > 0.0 && plan_->is_measurable(source)) {
      plan_->meter->add_encoded(half().format, place, floats_of(source), out,
                                half().per_unit(weight));
    }
  }
  if (pays_residual(owner)) keep_residual(floats_of(source), place, out);
  return {out, plan_->sums_to(owner) ? crc32c(out) : 0};
}

// Writes the error of encoding `values` to the residual. A packet that is sent again has the same
// bytes, so the same error is written once more.
void OwnContribution::keep_residual(std::span<const float> values, const codec::Place& place,
                                    ByteSpan encoded) {
  LEEWAY_ASSERT(input_ == copied_input_.data());  // with a residual, the input is our copy
  const auto first =
      static_cast<std::size_t>(values.data() - reinterpret_cast<const float*>(input_));
  const auto residual = half().residual.subspan(first, values.size());
  codec::decode(half().format, encoded, place, residual);
  // A residual that is not finite is dropped, because it would spoil all later contributions.
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float left_out = values[i] - residual[i];
    residual[i] = std::isfinite(left_out) ? left_out : 0.0f;
  }
}

protocol::Payload OwnContribution::parity(Rank owner, wire::ParityPlace place,
                                          MutableByteSpan scratch) {
  if (!plan_->contents) return {scratch.first(plan_->reduced_packet_bytes())};
  const schedule::PacketGrid grid = plan_->reduced_grid(owner);
  return parities_[owner].payload(place, scratch, plan_->sums_to(owner),
                                  [&](PacketIndex index) -> ByteSpan {
                                    if (half().format.identity())
                                      return input_to(owner, grid, index);
                                    return kept_place(owner, grid, index);
                                  });
}

ByteSpan OwnContribution::to_self(PacketIndex index) {
  return contribution_to(plan_->self, own_grid_, index, packet_.data());
}

ByteSpan OwnContribution::kept_to_self(PacketIndex index) {
  const ByteSpan own = to_self(index);
  const std::byte* const result = half().result + own_grid_.packet_offset(index) * element_bytes_;
  if (!half().finite_only || own.data() != result) return own;
  std::memcpy(packet_.data(), own.data(), own.size());
  return {packet_.data(), own.size()};
}

void OwnContribution::measure(PacketIndex index) {
  const double weight = plan_->round.weight_for(plan_->self);
  if (weight <= 0.0) return;
  const ByteSpan own = to_self(index);
  if (!plan_->is_measurable(own)) return;
  plan_->meter->add_own(floats_of(own), half().per_unit(weight));
  if (half().control.empty()) return;
  const auto control =
      half().control.subspan(own_grid_.packet_offset(index), own_grid_.packet_elements(index));
  plan_->meter->add_control(floats_of(own), half().per_unit(weight), control,
                            plan_->result_per_unit());
}

}  // namespace leeway::collective
