// Predicts how far replicas are apart under bounded-drift broadcast.
//
// Model (README.md, "Drift"): a parameter takes one optimizer step per broadcast, with mean u and
// variance s^2, independent from step to step. The owner sends the parameter's value; each receiver
// misses it with probability p and then keeps its copy. A copy's age is the number of broadcasts
// missed in a row. Everything here is the stationary state after a broadcast, per element; losses
// of different receivers are independent.
//
// p is a fraction in [0, 1). At p = 1 nothing ever arrives, drift has no bound, and the model's
// factors are infinite.
#pragma once

namespace leeway::estimate {

// The two parts of a mean-square distance: variance * s^2 + mean * u^2.
struct DriftFactors {
  double variance = 0.0;
  double mean = 0.0;

  double of(double step_variance, double step_mean_square) const;
};

// Stationary state. `pair`: two ranks that do not own the element; `owner`: its owner and one other
// rank.
struct DriftModel {
  double differ = 0.0;  // probability that the two of a pair hold different versions
  DriftFactors pair;
  DriftFactors owner;
  double age_mean = 0.0;  // mean age of a copy, in broadcasts
};

// Independent losses. Ages are geometric, P(A = k) = (1-p) p^k.
DriftModel independent_drift(double p);

// The form of arXiv 2507.07114: 2p/(1+p) times the mean square gap between the fresh value and the
// stale copy, given that exactly one of a pair received. The gap already contains the drift of a
// copy (s^2/(1-p) for a random walk), so do not pass s^2.
double pair_drift_from_gap(double p, double gap_mean_square);

}  // namespace leeway::estimate
