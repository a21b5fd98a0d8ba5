// Links with weights, and sets of ranks from which a packet came, for tests of the scale plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "estimate/scale_plan.h"
#include "unit/estimate/arrival_patterns.h"

namespace leeway::estimate::testing {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
inline constexpr Estimator kAllEstimators[] = {Estimator::zero_fill,        Estimator::ratio,
                                               Estimator::symmetric_ratio,  Estimator::stratified,
                                               Estimator::horvitz_thompson, Estimator::augmented};

inline std::vector<std::uint64_t> ranks(std::size_t size,
                                        std::initializer_list<std::size_t> present) {
  return mask_of(size, std::vector<std::size_t>(present));
}

// Makes links with these weights. Entry 0 is the owner's.
inline std::vector<LinkTally> weighted_links(std::initializer_list<double> weights,
                                             std::uint32_t sent = 10, std::uint32_t arrived = 8) {
  std::vector<LinkTally> links;
  for (const double weight : weights)
    links.push_back({.sent = sent, .arrived = arrived, .weight = weight});
  links[0].arrived = sent;
  return links;
}

inline double sum_of(std::span<const float> scales) {
  return std::accumulate(scales.begin(), scales.end(), 0.0);
}

}  // namespace leeway::estimate::testing
