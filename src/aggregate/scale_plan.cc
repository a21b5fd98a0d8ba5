// The estimators' formulas. All divisions are last, so that complete arrival gives exact scales.
#include "aggregate/scale_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "aggregate/arrival_mask.h"
#include "base/contracts.h"
#include "base/philox.h"

namespace leeway::aggregate {
namespace {

constexpr std::uint32_t kVirtualLossStream = 0x70000000;  // stream tag of philox.h

double divide_or_zero(double numerator, double denominator) {
  return denominator > 0.0 ? numerator / denominator : 0.0;
}

double inverse_rate(const Link& link) {
  // A flow of one packet has k = n whenever its block arrived: its rate is known from earlier
  // rounds only.
  if (link.sent <= 1)
    return link.prior_rate > 0.0 && link.prior_rate <= 1.0 ? 1.0 / link.prior_rate : 1.0;
  return link.arrived == 0 ? 1.0 : static_cast<double>(link.sent) / link.arrived;
}

// E[1/K | K >= 1] - 1/n for K binomial over n contributions that are lost with chance p.
double inverse_count_excess(double n, double p) {
  if (p <= 0.0 || p >= 1.0) return 0.0;
  double expectation = 0.0;
  for (double k = 1.0; k <= n; k += 1.0) {
    const double log_chance = std::lgamma(n + 1.0) - std::lgamma(k + 1.0) -
                              std::lgamma(n - k + 1.0) + k * std::log1p(-p) + (n - k) * std::log(p);
    expectation += std::exp(log_chance) / k;
  }
  return expectation / (1.0 - std::pow(p, n)) - 1.0 / n;
}

}  // namespace

void ScalePlan::prepare(const ScaleRules& rules, std::span<const Link> links) {
  LEEWAY_ASSERT(rules.owner < links.size());
  LEEWAY_ASSERT(rules.op == ReduceOp::avg || rules.op == ReduceOp::sum);
  rules_ = rules;
  find_weights(links);
  find_rates(links);
  numerator_ = rules.op == ReduceOp::sum ? total_weight_ : 1.0;
  count_excess_ = rules.estimator == Estimator::symmetric_ratio
                      ? inverse_count_excess(static_cast<double>(links.size()), pooled_loss_)
                      : 0.0;
}

void ScalePlan::find_weights(std::span<const Link> links) {
  double known_sum = 0.0;
  std::size_t known = 0;
  for (const Link& link : links) {
    if (std::isnan(link.weight)) continue;
    known_sum += link.weight;
    ++known;
  }
  const double mean = known > 0 ? known_sum / static_cast<double>(known) : 1.0;
  weight_.resize(links.size());
  total_weight_ = 0.0;
  squared_weight_ = 0.0;
  for (std::size_t i = 0; i < links.size(); ++i) {
    weight_[i] = std::isnan(links[i].weight) ? mean : links[i].weight;
    total_weight_ += weight_[i];
    squared_weight_ += weight_[i] * weight_[i];
  }
}

void ScalePlan::find_rates(std::span<const Link> links) {
  rate_weight_.resize(links.size());
  double sent = 0.0;
  double arrived = 0.0;
  double prior = 0.0;
  bool single_packets = true;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = links[i];
    rate_weight_[i] = i == rules_.owner ? 1.0 : inverse_rate(link);
    if (i == rules_.owner) continue;
    sent += link.sent;
    arrived += link.arrived;
    prior += link.prior_rate;
    single_packets = single_packets && link.sent <= 1;
  }
  pooled_loss_ = sent > 0.0 ? 1.0 - arrived / sent : 0.0;
  const double others = static_cast<double>(links.size()) - 1.0;
  virtual_loss_rate_ = !single_packets || others < 1.0 ? pooled_loss_ : 1.0 - prior / others;
}

double ScalePlan::arrived_weight(ArrivalMask arrived) const {
  double sum = 0.0;
  for_each_arrived(arrived, [&](std::size_t i) { sum += weight_[i]; });
  return sum;
}

std::uint32_t ScalePlan::contributors(ArrivalMask arrived) const {
  std::uint32_t count = 0;
  for_each_arrived(arrived, [&](std::size_t i) { count += weight_[i] > 0.0; });
  return count;
}

BlockScales ScalePlan::scales(ArrivalMask arrived, std::span<float> scale) const {
  LEEWAY_ASSERT(scale.size() == weight_.size() && arrived.size() * 64 >= scale.size());
  std::fill(scale.begin(), scale.end(), 0.0f);
  double control = 0.0;
  switch (rules_.estimator) {
    case Estimator::zero_fill:
      fill_equal(arrived, divide_or_zero(numerator_, total_weight_), scale);
      break;
    case Estimator::ratio:
    case Estimator::symmetric_ratio:
      fill_equal(arrived, divide_or_zero(numerator_, arrived_weight(arrived)), scale);
      break;
    case Estimator::stratified:
      fill_stratified(arrived, scale);
      break;
    case Estimator::horvitz_thompson:
      fill_by_rate(arrived, scale);
      break;
    case Estimator::augmented:
      control = fill_augmented(arrived, scale);
      break;
  }
  return {static_cast<float>(control), contributors(arrived)};
}

void ScalePlan::fill_equal(ArrivalMask arrived, double each, std::span<float> scale) const {
  for_each_arrived(arrived, [&](std::size_t i) { scale[i] = static_cast<float>(each); });
}

void ScalePlan::fill_stratified(ArrivalMask arrived, std::span<float> scale) const {
  const double own = weight_[rules_.owner];
  double others = 0.0;
  for_each_arrived(arrived, [&](std::size_t i) { others += i == rules_.owner ? 0.0 : weight_[i]; });
  double own_scale =
      divide_or_zero(numerator_, own);  // nobody else arrived: the own mean stands for all
  if (others > 0.0) {
    fill_equal(arrived, numerator_ * (total_weight_ - own) / (total_weight_ * others), scale);
    own_scale = numerator_ / total_weight_;
  }
  if (contains(arrived, rules_.owner)) scale[rules_.owner] = static_cast<float>(own_scale);
}

void ScalePlan::fill_by_rate(ArrivalMask arrived, std::span<float> scale) const {
  const double share = divide_or_zero(numerator_, total_weight_);
  for_each_arrived(arrived,
                   [&](std::size_t i) { scale[i] = static_cast<float>(rate_weight_[i] * share); });
}

// V + sum R w (c/C) (G/c - V): the part of the weight that did not arrive is given to the variate.
// Negative when more arrived than its expectation.
double ScalePlan::fill_augmented(ArrivalMask arrived, std::span<float> scale) const {
  fill_by_rate(arrived, scale);
  double covered = 0.0;
  for_each_arrived(arrived, [&](std::size_t i) { covered += rate_weight_[i] * weight_[i]; });
  const double missing = divide_or_zero(total_weight_ - covered, total_weight_);
  if (rules_.control_given) return missing;
  const Rank owner = rules_.owner;
  const double own = weight_[owner];
  if (own > 0.0 && contains(arrived, owner)) {
    scale[owner] = static_cast<float>(numerator_ / total_weight_ + numerator_ * missing / own);
  }
  return 0.0;
}

double ScalePlan::element_variance(ArrivalMask arrived, std::span<const float> contributions,
                                   double variate) const {
  if (total_weight_ <= 0.0) return 0.0;
  const double share = numerator_ / total_weight_;
  const double per_unit = divide_or_zero(variate, numerator_);  // the variate of a sum is a sum
  const double odds = pooled_loss_ < 1.0 ? pooled_loss_ / (1.0 - pooled_loss_) : 0.0;
  const double own = weight_[rules_.owner];
  const double own_mean = own > 0.0 ? contributions[rules_.owner] / own : 0.0;
  const double effective_count_inverse = squared_weight_ / (total_weight_ * total_weight_);
  switch (rules_.estimator) {
    case Estimator::zero_fill: {
      double squares = 0.0;
      for_each_arrived(arrived, [&](std::size_t i) {
        squares += i == rules_.owner ? 0.0 : double{contributions[i]} * contributions[i];
      });
      return share * share * pooled_loss_ * squares;
    }
    case Estimator::ratio:
    case Estimator::stratified:
      return numerator_ * numerator_ * odds * effective_count_inverse *
             spread_variance(arrived, contributions);
    case Estimator::symmetric_ratio:
      return numerator_ * numerator_ * count_excess_ * spread_variance(arrived, contributions);
    case Estimator::horvitz_thompson:
      return share * share * rate_variance(arrived, contributions, 0.0);
    case Estimator::augmented:
      return share * share *
             rate_variance(arrived, contributions, rules_.control_given ? per_unit : own_mean);
  }
  return 0.0;
}

// S2: the variance of the contributions per unit of work, from those that arrived; 0 if fewer than
// two did.
double ScalePlan::spread_variance(ArrivalMask arrived, std::span<const float> contributions) const {
  double weight = 0.0;
  double squared = 0.0;
  double sum = 0.0;
  for_each_arrived(arrived, [&](std::size_t i) {
    if (weight_[i] <= 0.0) return;
    weight += weight_[i];
    squared += weight_[i] * weight_[i];
    sum += contributions[i];
  });
  if (weight <= 0.0) return 0.0;
  const double mean = sum / weight;
  double deviations = 0.0;
  for_each_arrived(arrived, [&](std::size_t i) {
    if (weight_[i] <= 0.0) return;
    const double deviation = contributions[i] / weight_[i] - mean;
    deviations += weight_[i] * deviation * deviation;
  });
  return divide_or_zero(deviations, weight - squared / weight);
}

// sum R w (w - 1) (G - c V)^2: each term's expectation over R is its link's share of the variance.
double ScalePlan::rate_variance(ArrivalMask arrived, std::span<const float> contributions,
                                double centre) const {
  double sum = 0.0;
  for_each_arrived(arrived, [&](std::size_t i) {
    const double deviation = contributions[i] - weight_[i] * centre;
    sum += rate_weight_[i] * (rate_weight_[i] - 1.0) * deviation * deviation;
  });
  return sum;
}

bool virtually_lost(double rate, std::uint64_t seed, std::uint32_t round, Rank owner,
                    std::uint32_t block) {
  return to_unit(keyed_hash(seed, block, kVirtualLossStream, round, owner)) < rate;
}

}  // namespace leeway::aggregate
