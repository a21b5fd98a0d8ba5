#include "collective/contribution_scales.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/contracts.h"

namespace leeway::collective {

void ContributionScales::begin(const OperationPlan& plan, const estimate::LinkHistory& history,
                               std::uint32_t packets) {
  plan_ = &plan;
  packets_ = packets;
  weights_.assign(plan.size, std::numeric_limits<float>::quiet_NaN());
  weights_[plan.self] = static_cast<float>(plan.round.weight_for(plan.self));
  tallies_.assign(plan.size, {});
  uncounted_.resize(0);
  for_complete_ = nobody_has_units_ = false;
  mask_.assign((plan.size + 63) / 64, 0);
  scales_.assign(plan.size, 1.0f);
  // Delivery rates of earlier operations make up for lost packets under best effort only. The other
  // delivery classes repair losses.
  if (!plan.reduction.one_pass) return;
  for (Rank rank = 0; rank < plan.size; ++rank) {
    tallies_[rank].prior_rate = history.delivery_rate(rank);
    tallies_[rank].heard_rate = history.heard_rate(rank, packets);
  }
}

double ContributionScales::units() const {
  double sum = 0.0;
  for (const float weight : weights_) sum += std::isnan(weight) ? 0.0 : weight;
  return sum;
}

void ContributionScales::tally(std::span<const protocol::ReceiveFlow> flows) {
  for (Rank rank = 0; rank < plan_->size; ++rank) {
    estimate::LinkTally& tally = tallies_[rank];
    const bool own = rank == plan_->self;
    tally.sent = std::max<std::uint32_t>(packets_, 1);
    tally.arrived = own ? tally.sent : flows[rank].arrived_count;
    if (!own) weights_[rank] = flows[rank].weight;
    tally.weight = weights_[rank];
  }
}

void ContributionScales::uncount(Rank rank, PacketIndex index) {
  LEEWAY_ASSERT(tallies_[rank].arrived > 0);
  if (uncounted_.size() == 0) uncounted_.resize(std::size_t{packets_} * plan_->size);
  uncounted_.set(rank * packets_ + index.value);
  --tallies_[rank].arrived;
}

void ContributionScales::build() {
  const ReductionPlan& half = plan_->reduction;
  scale_plan_ = estimate::ScalePlan({.estimator = half.lossy ? half.estimator : Estimator::ratio,
                                     .op = half.op,
                                     .links = tallies_,
                                     .owner = plan_->self,
                                     .external_control = !half.control.empty(),
                                     .seed = plan_->seed,
                                     .step = plan_->step});
  for_complete_ = false;
}

bool ContributionScales::has(Rank rank, PacketIndex index,
                             std::span<const protocol::ReceiveFlow> flows) const {
  if (uncounted_.size() > 0 && uncounted_.test(rank * packets_ + index.value)) return false;
  return rank == plan_->self || flows[rank].arrived.test(index.value);
}

estimate::BlockScales ContributionScales::complete() {
  if (!for_complete_) {
    for (Rank rank = 0; rank < plan_->size; ++rank) {
      tallies_[rank].sent = tallies_[rank].arrived = std::max<std::uint32_t>(packets_, 1);
      tallies_[rank].weight = weights_[rank];
    }
    build();
    nobody_has_units_ = scale_plan_.complete_scales(scales_).untouched;
    if (plan_->meter != nullptr) moments_ = scale_plan_.complete_moments();
    for_complete_ = true;
  }
  return {static_cast<std::uint32_t>(plan_->size), nobody_has_units_, 0.0f};
}

estimate::BlockScales ContributionScales::partial(PacketIndex index,
                                                  std::span<const protocol::ReceiveFlow> flows) {
  std::fill(mask_.begin(), mask_.end(), 0);
  for (Rank rank = 0; rank < plan_->size; ++rank)
    word(rank) |= std::uint64_t{has(rank, index, flows)} << (rank % 64);
  return take(index);
}

estimate::BlockScales ContributionScales::without(std::span<const Rank> left_out, PacketIndex index,
                                                  const estimate::BlockScales& block) {
  if (block.contributors == static_cast<std::uint32_t>(plan_->size)) {
    for (Rank rank = 0; rank < plan_->size; ++rank) word(rank) |= std::uint64_t{1} << (rank % 64);
  }
  for (const Rank rank : left_out) word(rank) &= ~(std::uint64_t{1} << (rank % 64));
  return take(index);
}

// Finds the scales of a packet to which the ranks in `mask_` contribute.
estimate::BlockScales ContributionScales::take(PacketIndex index) {
  for_complete_ = false;
  const estimate::BlockScales block = scale_plan_.scales(mask_, index.value, scales_);
  if (plan_->meter != nullptr) moments_ = scale_plan_.moments(scales_, block.control);
  return block;
}

}  // namespace leeway::collective
