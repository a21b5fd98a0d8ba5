// Exact expectations over packet loss: every pattern of arrivals of one packet index, with its
// probability.
//
// With few ranks, tests of estimators need no random numbers: they visit all 2^N patterns.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "estimate/scale_plan.h"

namespace leeway::estimate::testing {

// Makes links that carried `sent` packets, of which `arrived` came, with weight 1. Entry 0 is the
// owner's, and lost nothing.
inline std::vector<LinkTally> equal_links(std::size_t size, std::uint32_t sent,
                                          std::uint32_t arrived) {
  std::vector<LinkTally> links(size, {.sent = sent, .arrived = arrived, .weight = 1.0});
  links[0].arrived = sent;
  return links;
}

// Makes the bit mask of a set of ranks, as scales() takes it.
inline std::vector<std::uint64_t> mask_of(std::size_t size, std::span<const std::size_t> ranks) {
  std::vector<std::uint64_t> mask((size + 63) / 64, 0);
  for (const std::size_t rank : ranks) mask[rank / 64] |= std::uint64_t{1} << rank % 64;
  return mask;
}

inline std::vector<std::uint64_t> first_ranks(std::size_t size, std::size_t count) {
  std::vector<std::uint64_t> mask((size + 63) / 64, 0);
  for (std::size_t rank = 0; rank < count; ++rank) mask[rank / 64] |= std::uint64_t{1} << rank % 64;
  return mask;
}

// Calls visit(mask, probability) for every possible pattern of arrivals, where rank i's packet
// arrives independently with rates[i]. The owner's rate is 1. At most 20 ranks.
template <typename Visit>
void for_each_pattern(std::span<const double> rates, Visit visit) {
  for (std::uint64_t pattern = 0; pattern < std::uint64_t{1} << rates.size(); ++pattern) {
    double probability = 1.0;
    for (std::size_t rank = 0; rank < rates.size(); ++rank) {
      probability *= (pattern >> rank & 1) != 0 ? rates[rank] : 1.0 - rates[rank];
    }
    if (probability > 0.0) visit(pattern, probability);
  }
}

// Mean and variance of a discrete variable. `mass` is the total probability of what was added; the
// moments are conditional on that.
struct Moments {
  double mass = 0.0;
  double first = 0.0;
  double second = 0.0;

  void add(double value, double probability) {
    mass += probability;
    first += probability * value;
    second += probability * value * value;
  }
  double mean() const { return first / mass; }
  double variance() const { return second / mass - mean() * mean(); }
  double mean_square_error(double target) const {
    return variance() + (mean() - target) * (mean() - target);
  }
};

// The scales that a plan gives for one pattern.
struct Scaled {
  explicit Scaled(const ScalePlan& plan, std::span<const std::uint64_t> mask, std::size_t size,
                  std::uint32_t index = 0)
      : scales(size), block(plan.scales(mask, index, scales)) {}

  // Returns the sum of scale_i times contribution i, plus the control's scale times `control`.
  double result(std::span<const double> contributions, double control = 0.0) const {
    double sum = block.control * control;
    for (std::size_t rank = 0; rank < scales.size(); ++rank)
      sum += scales[rank] * contributions[rank];
    return sum;
  }
  // Returns the result's variance for this pattern, if contributions are independent with variance
  // 1.
  double noise() const {
    double sum = 0.0;
    for (const float scale : scales) sum += static_cast<double>(scale) * scale;
    return sum;
  }

  std::vector<float> scales;
  BlockScales block;
};

// Returns one block in which a symmetric plan keeps the owner's contribution, and one in which the
// plan drops it. The plan must have arrivals, and losses in several blocks; otherwise no such
// blocks exist and the search does not end.
inline std::pair<std::uint32_t, std::uint32_t> virtual_loss_blocks(const ScalePlan& plan,
                                                                   std::size_t size, Rank owner) {
  // The plan drops the owner's contribution less often in a block that lacks more others. So a
  // block found with all packets keeps it in every pattern, and one found with no other packet
  // drops it in every pattern.
  const auto first_with = [&](const std::vector<std::uint64_t>& mask, bool lost) {
    std::uint32_t block = 0;
    while ((Scaled(plan, mask, size, block).scales[owner] == 0.0f) != lost) ++block;
    return block;
  };
  const std::size_t alone[] = {owner};
  return {first_with(first_ranks(size, size), false), first_with(mask_of(size, alone), true)};
}

inline double binomial(std::uint32_t n, std::uint32_t k, double rate) {
  return std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) +
                  k * std::log(rate) + (n - k) * std::log1p(-rate));
}

// Calls visit(scaled, others, probability) for all that can happen to a packet of `size` equal
// links with `rate`, where `others` packets arrive beside the owner's. For many ranks it visits
// only every number of arrivals, because equal links have equal scales.
template <typename Visit>
void for_each_arrival(const ScalePlan& plan, std::size_t size, double rate, Visit visit) {
  if (size <= 10) {
    std::vector<double> rates(size, rate);
    rates[0] = 1.0;
    for_each_pattern(rates, [&](std::uint64_t mask, double probability) {
      visit(Scaled(plan, {&mask, 1}, size), static_cast<std::uint32_t>(std::popcount(mask)) - 1,
            probability);
    });
    return;
  }
  const auto others = static_cast<std::uint32_t>(size - 1);
  for (std::uint32_t k = 0; k <= others; ++k) {
    visit(Scaled(plan, first_ranks(size, k + 1), size), k, binomial(others, k, rate));
  }
}

// Calls visit() as for_each_arrival() does, for symmetric_ratio, which may also drop the owner's
// contribution. The number for visit() includes the owner's contribution if that is kept.
template <typename Visit>
void for_each_symmetric_arrival(const ScalePlan& plan, std::size_t size, double rate, Visit visit) {
  const auto [kept, lost] = testing::virtual_loss_blocks(plan, size, 0);
  const auto others = static_cast<std::uint32_t>(size - 1);
  for (std::uint32_t k = 0; k <= others; ++k) {
    const double probability = binomial(others, k, rate);
    visit(Scaled(plan, first_ranks(size, k + 1), size, kept), k + 1, probability * rate);
    visit(Scaled(plan, first_ranks(size, k + 1), size, lost), k, probability * (1.0 - rate));
  }
}

}  // namespace leeway::estimate::testing
