// Formulas of drift for simulations only; the library does not need them. Section "Drift" of the
// README of src/math/estimate derives them.
#pragma once

#include <cmath>
#include <cstdint>

#include "estimate/drift.h"

namespace leeway::estimate::testing {

// Drift with Gilbert losses: a link is good or bad for whole broadcasts. In the long run it is bad
// for the share p of broadcasts, for `burst` >= 1 of them in a row on average. Losses are
// independent if burst = 1/(1-p).
//
// The age A of a copy has P(A >= k) = p (1-r)^(k-1) for k >= 1, where r = 1/burst is the chance
// that a bad link recovers. Then E[A] = p/r, E[A^2] = p(2-r)/r^2, and for the copies A, B of two
// ranks E min(A,B) = p^2/(r(2-r)) and P(A = B >= 1) = p^2 r/(2-r).
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

// Returns the fraction of blocks that a broadcast must deliver (refresh), because they have reached
// the age C = `age_max` >= 1. Losses are independent with probability p.
//
// This is a renewal process. An age runs 0, 1, ... and returns to 0 by an arrival or, at C, by the
// refresh. A cycle takes (1-p^C)/(1-p) broadcasts on average, and ends in a refresh with
// probability p^C.
inline double refresh_rate(double p, std::uint32_t age_max) {
  const double capped = std::pow(p, age_max);
  return (1.0 - p) * capped / (1.0 - capped);
}

}  // namespace leeway::estimate::testing
