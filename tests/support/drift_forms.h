// Forms of drift that simulations are compared with and the library does not predict. The README of
// src/math/estimate has them ("Drift").
#pragma once

#include <cmath>
#include <cstdint>

#include "estimate/drift.h"

namespace leeway::estimate::testing {

// Gilbert losses: a link is good or bad for whole broadcasts, bad with stationary probability p and
// for `burst` broadcasts in a row on average, burst >= 1. burst = 1/(1-p) is independent loss.
//
// P(A >= k) = p (1-r)^(k-1) for k >= 1, where r = 1/burst is the chance that a bad link recovers.
// Then E[A] = p/r, E[A^2] = p(2-r)/r^2, E min(A,B) = p^2/(r(2-r)) and P(A = B >= 1) = p^2 r/(2-r).
inline DriftModel burst_drift(double p, double burst) {
  const double r = 1.0 / burst;
  const double age = p * burst;
  const double age_square = p * (2.0 - r) / (r * r);
  const double good = 1.0 - p;
  return {.differ = 1.0 - good * good - p * p * r / (2.0 - r),
          .pair = {.variance = 2.0 * (age - p * p / (r * (2.0 - r))),
                   .mean = 2.0 * (age_square - age * age)},
          .owner = {.variance = age, .mean = age_square},
          .age_mean = age};
}

// Fraction of all blocks that reach age `age_max` >= 1 and are refreshed exactly, per broadcast,
// with independent losses.
//
// Renewal: a copy's age runs 0, 1, ..., and returns to 0 by an arrival or, at age_max, by the
// refresh. Cycles last (1-p^C)/(1-p) broadcasts on average and end in a refresh with probability
// p^C.
inline double refresh_rate(double p, std::uint32_t age_max) {
  const double capped = std::pow(p, age_max);
  return (1.0 - p) * capped / (1.0 - capped);
}

}  // namespace leeway::estimate::testing
