#include "estimate/drift.h"

#include <cmath>

namespace leeway::estimate {

double DriftFactors::of(double step_variance, double step_mean_square) const {
  // A step that is exactly zero moves nothing, even over an infinite age.
  const double from_variance = step_variance == 0.0 ? 0.0 : variance * step_variance;
  const double from_mean = step_mean_square == 0.0 ? 0.0 : mean * step_mean_square;
  return from_variance + from_mean;
}

// E|A-B| steps separate a pair and E[A] the owner and a copy; the mean step adds its square times
// the squared distance.
DriftModel independent_drift(double p) {
  const double q = 1.0 - p;
  return {.differ = 2.0 * p / (1.0 + p),
          .pair = {.variance = 2.0 * p / (q * (1.0 + p)), .mean = 2.0 * p / (q * q)},
          .owner = {.variance = p / q, .mean = p * (1.0 + p) / (q * q)},
          .age_mean = p / q};
}

// P(A >= k) = p (1-r)^(k-1) for k >= 1, where r = 1/burst is the chance that a bad link recovers.
// Then E[A] = p/r, E[A^2] = p(2-r)/r^2, E min(A,B) = p^2/(r(2-r)) and P(A = B >= 1) = p^2 r/(2-r).
DriftModel burst_drift(double p, double burst) {
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

double pair_drift_from_gap(double p, double gap_mean_square) {
  return 2.0 * p / (1.0 + p) * gap_mean_square;
}

// Renewal: a copy's age runs 0, 1, ..., and returns to 0 by an arrival or, at age_max, by the
// refresh. Cycles last (1-p^C)/(1-p) broadcasts on average and end in a refresh with probability
// p^C.
double refresh_rate(double p, std::uint32_t age_max) {
  const double capped = std::pow(p, age_max);
  return (1.0 - p) * capped / (1.0 - capped);
}

double oldest_age(double p, double blocks, double broadcasts) {
  return std::log(blocks * broadcasts) / -std::log(p);
}

double delta_broadcast_growth(double p, double step_variance, double step_mean_square) {
  return 2.0 * p * (1.0 - p) * (step_variance + step_mean_square);
}

}  // namespace leeway::estimate
