#include "estimate/scale_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/contracts.h"
#include "base/philox.h"

namespace leeway::estimate {
namespace {

// Stream of the keyed hash that decides virtual losses (base/philox.h: top 4 bits of word b). In a
// virtual loss the owner leaves its own contribution out, as if a link had lost it.
constexpr std::uint32_t kVirtualLossStream = 0x7u << 28;

constexpr std::size_t kWordBits = 64;

bool is_weight(double weight) {
  return std::isfinite(weight) && weight >= 0.0;
}

// Weights are any finite float, so their reciprocals may exceed float's range. Such a scale becomes
// the largest float.
float to_scale(double scale) {
  constexpr double kMax = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(scale, -kMax, kMax));
}

// Calls visit(rank) for each set bit, in rank order.
template <typename Visit>
void for_each_rank(std::span<const std::uint64_t> mask, Visit visit) {
  for (std::size_t w = 0; w < mask.size(); ++w) {
    for (std::uint64_t bits = mask[w]; bits != 0; bits &= bits - 1) {
      visit(w * kWordBits + static_cast<std::size_t>(std::countr_zero(bits)));
    }
  }
}

bool has_rank(std::span<const std::uint64_t> mask, std::size_t rank) {
  return (mask[rank / kWordBits] >> (rank % kWordBits) & 1) != 0;
}

double heard_rate(const LinkTally& link) {
  return std::clamp(link.heard_rate, kHeardRateMin, 1.0);
}

// Returns w_i, the factor that makes up for a link's losses; 0 if nothing arrived that could be
// scaled.
double scale_of_link(const LinkTally& link) {
  if (link.arrived == 0) return 0.0;
  return static_cast<double>(link.sent) / link.arrived / heard_rate(link);
}

}  // namespace

ScalePlan::ScalePlan(const Inputs& inputs)
    : estimator_(inputs.estimator),
      owner_(inputs.owner),
      external_control_(inputs.external_control),
      seed_(inputs.seed),
      step_(inputs.step),
      links_(inputs.links.begin(), inputs.links.end()) {
  LEEWAY_ASSERT(owner_ < links_.size());
  LEEWAY_ASSERT(inputs.op == ReduceOp::sum || inputs.op == ReduceOp::avg);
  take_weights(inputs.op);
  take_link_scales();
}

// Fills in unknown weights. For a sum all weights are 1. For an average, unknown weights get the
// mean of the known ones.
void ScalePlan::take_weights(ReduceOp op) {
  double known = 0.0;
  std::size_t known_count = 0;
  for (LinkTally& link : links_) {
    if (op == ReduceOp::sum) link.weight = 1.0;
    if (!is_weight(link.weight)) continue;
    known += link.weight;
    ++known_count;
  }
  const double assumed = known_count == 0 ? 1.0 : known / static_cast<double>(known_count);
  for (LinkTally& link : links_) {
    if (!is_weight(link.weight)) link.weight = assumed;
    total_weight_ += link.weight;
  }
  gain_ = op == ReduceOp::sum ? static_cast<double>(links_.size()) : 1.0;
  fair_ = total_weight_ > 0.0 ? gain_ / total_weight_ : 0.0;
}

void ScalePlan::take_link_scales() {
  link_scale_.reserve(links_.size());
  for (const LinkTally& link : links_) {
    LEEWAY_ASSERT(link.arrived <= link.sent);
    link_scale_.push_back(scale_of_link(link));
  }
}

BlockScales ScalePlan::complete_scales(std::span<float> out) const {
  LEEWAY_ASSERT(out.size() == links_.size());
  const float fair = to_scale(fair_);
  for (std::size_t rank = 0; rank < out.size(); ++rank) out[rank] = has_units(rank) ? fair : 0.0f;
  return {static_cast<std::uint32_t>(links_.size()), !(total_weight_ > 0.0), 0.0f};
}

bool ScalePlan::estimated_rates() const {
  const auto any_other = [&](auto&& has_rate) {
    for (std::size_t rank = 0; rank < links_.size(); ++rank) {
      if (rank != owner_ && has_rate(links_[rank])) return true;
    }
    return false;
  };
  switch (estimator_) {
    case Estimator::horvitz_thompson:
    case Estimator::augmented:
      return any_other([](const LinkTally& link) { return heard_rate(link) < 1.0; });
    case Estimator::symmetric_ratio:
      return any_other([](const LinkTally& link) { return link.sent == 1; });
    default:
      return false;
  }
}

BlockScales ScalePlan::scales(std::span<const std::uint64_t> mask, std::uint32_t block_index,
                              std::span<float> out) const {
  LEEWAY_ASSERT(out.size() == links_.size());
  LEEWAY_ASSERT(mask.size() * kWordBits >= links_.size());
  const bool owner_counts =
      estimator_ != Estimator::symmetric_ratio || !virtually_lost(mask, block_index);
  const Present present = present_in(mask, owner_counts);
  BlockScales block{present.count, !(present.weight > 0.0), 0.0f};
  std::fill(out.begin(), out.end(), 0.0f);
  if (block.untouched) {
    // A control variate is a guess of the mean and needs no contribution. But without any units of
    // work there is no mean to guess.
    if (estimator_ == Estimator::augmented && external_control_ && total_weight_ > 0.0)
      block.control = 1.0f;
    return block;
  }
  switch (estimator_) {
    case Estimator::zero_fill:
      spread_evenly(mask, fair_, out);
      break;
    case Estimator::ratio:
    case Estimator::symmetric_ratio:
      spread_evenly(mask, gain_ / present.weight, out);
      if (!owner_counts) out[owner_] = 0.0f;
      break;
    case Estimator::stratified:
      stratify(mask, out);
      break;
    case Estimator::horvitz_thompson:
      rescale_links(mask, out);
      break;
    case Estimator::augmented:
      rescale_links(mask, out);
      block.control = place_control(mask, out);
      break;
  }
  return block;
}

// Draws whether the owner's contribution counts as lost in this packet. The key has no timing, so
// every run draws the same.
bool ScalePlan::virtually_lost(std::span<const std::uint64_t> mask,
                               std::uint32_t block_index) const {
  return to_unit(keyed_hash(seed_, block_index, kVirtualLossStream, step_, owner_)) <
         virtual_loss(mask);
}

// Returns the loss rate of all packets but this one. Including this packet would tie the owner's
// part in it to the other contributions there, which would bias the weights by order 1/n.
double ScalePlan::virtual_loss(std::span<const std::uint64_t> mask) const {
  double sent = 0.0;
  double arrived = 0.0;
  double unlikely = 0.0;
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    if (rank == owner_) continue;
    sent += links_[rank].sent;
    arrived += links_[rank].arrived;
    unlikely += 1.0 - std::clamp(links_[rank].prior_rate, 0.0, 1.0);
  }
  const auto others = static_cast<double>(links_.size() - 1);
  if (sent <= others) return others == 0.0 ? 0.0 : unlikely / others;
  double here = 0.0;
  for_each_rank(mask, [&](std::size_t rank) { here += rank == owner_ ? 0.0 : 1.0; });
  return 1.0 - (arrived - here) / (sent - others);
}

ScalePlan::Present ScalePlan::present_in(std::span<const std::uint64_t> mask,
                                         bool owner_counts) const {
  Present present;
  for_each_rank(mask, [&](std::size_t rank) {
    if (rank == owner_ && !owner_counts) return;
    ++present.count;
    present.weight += links_[rank].weight;
  });
  return present;
}

void ScalePlan::spread_evenly(std::span<const std::uint64_t> mask, double scale,
                              std::span<float> out) const {
  const float rounded = to_scale(scale);
  for_each_rank(mask, [&](std::size_t rank) { out[rank] = has_units(rank) ? rounded : 0.0f; });
}

// The owner has exactly its share c_o/C. The other ranks that are present stand for all other
// ranks. If the owner's contribution is missing, they also stand for it.
void ScalePlan::stratify(std::span<const std::uint64_t> mask, std::span<float> out) const {
  double others = 0.0;
  for_each_rank(mask,
                [&](std::size_t rank) { others += rank == owner_ ? 0.0 : links_[rank].weight; });
  if (!has_rank(mask, owner_)) return spread_evenly(mask, gain_ / others, out);
  const double own = links_[owner_].weight;
  if (others > 0.0) {
    spread_evenly(mask, gain_ * (total_weight_ - own) / (total_weight_ * others), out);
    out[owner_] = own > 0.0 ? to_scale(fair_) : 0.0f;
  } else {
    spread_evenly(mask, gain_ / own, out);
  }
}

void ScalePlan::rescale_links(std::span<const std::uint64_t> mask, std::span<float> out) const {
  for_each_rank(mask, [&](std::size_t rank) {
    out[rank] = has_units(rank) ? to_scale(fair_ * link_scale_[rank]) : 0.0f;
  });
}

// Gives the control variate the share that rescaled contributions leave, 1 - sum w_i c_i / C. It is
// negative if they make up for more than this packet lost. Without an external control variate, the
// owner's mean G_o/c_o takes its place, which only changes the owner's scale. If the owner has no
// units or is missing, there is no such mean and scales are plain Horvitz-Thompson.
float ScalePlan::place_control(std::span<const std::uint64_t> mask, std::span<float> out) const {
  const double own = links_[owner_].weight;
  double held = 0.0;
  for_each_rank(mask, [&](std::size_t rank) {
    if (rank != owner_ || external_control_) held += link_scale_[rank] * links_[rank].weight;
  });
  if (external_control_) return to_scale(1.0 - held / total_weight_);
  if (own > 0.0 && has_rank(mask, owner_))
    out[owner_] = to_scale(gain_ * (1.0 - held / total_weight_) / own * link_scale_[owner_]);
  return 0.0f;
}

WeightMoments ScalePlan::moments(std::span<const float> scales, float control) const {
  WeightMoments packet{.sum = control, .control_squares = double{control} * control};
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    const double weight = scales[rank] * links_[rank].weight / gain_;
    const double fair = fair_ * links_[rank].weight / gain_;
    packet.sum += weight;
    packet.squares += weight * weight;
    if (rank != owner_) packet.encoded_squares += weight * weight;
    packet.fair_products += weight * fair;
    packet.fair_squares += fair * fair;
  }
  packet.sum_squared = packet.sum * packet.sum;
  return packet;
}

WeightMoments ScalePlan::complete_moments() const {
  WeightMoments packet{.sum = 1.0, .sum_squared = 1.0};
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    const double fair = fair_ * links_[rank].weight / gain_;
    packet.squares += fair * fair;
    if (rank != owner_) packet.encoded_squares += fair * fair;
  }
  packet.fair_products = packet.fair_squares = packet.squares;
  return packet;
}

void WeightMoments::add(const WeightMoments& packet, double elements) {
  sum += elements * packet.sum;
  sum_squared += elements * packet.sum_squared;
  squares += elements * packet.squares;
  encoded_squares += elements * packet.encoded_squares;
  control_squares += elements * packet.control_squares;
  fair_products += elements * packet.fair_products;
  fair_squares += elements * packet.fair_squares;
}

WeightMoments WeightMoments::over(double elements) const {
  if (elements == 0.0) return {};
  return {.sum = sum / elements,
          .sum_squared = sum_squared / elements,
          .squares = squares / elements,
          .encoded_squares = encoded_squares / elements,
          .control_squares = control_squares / elements,
          .fair_products = fair_products / elements,
          .fair_squares = fair_squares / elements};
}

}  // namespace leeway::estimate
