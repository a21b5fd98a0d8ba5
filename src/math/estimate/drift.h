// Predicts how far replicas are apart under bounded-drift broadcast.
//
// Model (README.md, "Drift"): a parameter takes one optimizer step per broadcast, with mean u and
// variance s^2, independent from step to step. The owner sends its absolute value; each receiver
// misses it with probability p and then keeps the value it has. A copy's age is the number of
// broadcasts missed in a row. Everything here is the stationary state after a broadcast, per
// element; losses of different receivers are independent.
//
// p is a fraction in [0, 1). At p = 1 nothing ever arrives, drift has no bound, and these return
// infinity.
#pragma once

#include <cstdint>

namespace leeway::estimate {

// The two parts of a mean-square distance: variance * s^2 + mean * u^2.
struct DriftFactors {
  double variance = 0.0;
  double mean = 0.0;

  double of(double step_variance, double step_mean_square) const;
};

// Stationary state under one kind of loss. `pair`: two ranks that do not own the element; `owner`:
// its owner and one other rank.
struct DriftModel {
  double differ = 0.0;  // probability that the two of a pair hold different versions
  DriftFactors pair;
  DriftFactors owner;
  double age_mean = 0.0;  // mean age of a copy, in broadcasts
};

// Independent losses. Ages are geometric, P(A = k) = (1-p) p^k.
DriftModel independent_drift(double p);

// Gilbert losses: a link is good or bad for whole broadcasts, bad with stationary probability p and
// for `burst` broadcasts in a row on average, burst >= 1. burst = 1/(1-p) is independent loss.
DriftModel burst_drift(double p, double burst);

// The form of arXiv 2507.07114: 2p/(1+p) times the mean square gap between the fresh value and the
// stale copy given that exactly one of the pair received. That gap already contains the drift of a
// copy (s^2/(1-p) for a random walk), so it must never be mixed with s^2.
double pair_drift_from_gap(double p, double gap_mean_square);

// Fraction of all blocks that reach age `age_max` >= 1 and are refreshed exactly, per broadcast,
// with independent losses.
double refresh_rate(double p, std::uint32_t age_max);

// Returns the age at which about one copy is expected, over `blocks` blocks and `broadcasts`
// broadcasts without a cap. 0 < p < 1.
double oldest_age(double p, double blocks, double broadcasts);

// Growth of a pair's mean square distance with every broadcast if steps are broadcast as deltas. It
// goes on for ever, which is the reason to send values instead of differences.
double delta_broadcast_growth(double p, double step_variance, double step_mean_square);

}  // namespace leeway::estimate
