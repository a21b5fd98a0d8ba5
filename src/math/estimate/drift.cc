#include "estimate/drift.h"

namespace leeway::estimate {

double DriftFactors::of(double step_variance, double step_mean_square) const {
  // A step that is exactly zero moves nothing, even over an infinite age.
  const double from_variance = step_variance == 0.0 ? 0.0 : variance * step_variance;
  const double from_mean = step_mean_square == 0.0 ? 0.0 : mean * step_mean_square;
  return from_variance + from_mean;
}

// With ages A and B, a pair is |A-B| steps apart, and a copy is A steps behind the owner. The
// factor of the variance is the mean of this number of steps. The factor of the squared mean step
// is its mean square.
DriftModel independent_drift(double p) {
  const double q = 1.0 - p;
  return {.differ = 2.0 * p / (1.0 + p),
          .pair = {.variance = 2.0 * p / (q * (1.0 + p)), .mean = 2.0 * p / (q * q)},
          .owner = {.variance = p / q, .mean = p * (1.0 + p) / (q * q)},
          .age_mean = p / q};
}

double pair_drift_from_gap(double p, double gap_mean_square) {
  return 2.0 * p / (1.0 + p) * gap_mean_square;
}

}  // namespace leeway::estimate
