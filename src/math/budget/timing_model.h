// Predicts the gain of a compute threshold from five numbers (the model of arXiv 2306.10598). Every
// worker's compute time is a sum of M micro-batch times of mean mu and deviation sigma, taken as
// normal. A step lasts as long as the slowest of N workers, plus a fixed time T_c. The prediction
// is a bound rather than an estimate: micro-batches are cut off at the threshold, and real
// latencies have tails. ThresholdSearch measures instead. Pure functions.
#pragma once

#include <cstdint>

namespace leeway::budget {

// Returns the mean of the largest of n >= 1 independent standard normal variables, by Gumbel's
// approximation. It is 0 for n = 1. With the normal quantile q and Euler's constant g it is
//   B_n = (1 - g) q(1 - 1/n) + g q(1 - 1/(e n)).
double gumbel_largest_normal(std::uint32_t n);

// Times in seconds.
struct ThresholdPrediction {
  double threshold_s = 0.0;
  double drop_rate = 0.0;          // fraction of the micro-batches
  double effective_speedup = 0.0;  // gain in micro-batches per time: S_eff - 1
};

struct TimingModel {
  std::uint32_t workers = 1;
  std::uint32_t micro_batches = 1;       // M, a step
  double micro_batch_mean_s = 0.0;       // mu > 0
  double micro_batch_deviation_s = 0.0;  // sigma >= 0
  double overhead_s = 0.0;               // T_c >= 0

  // Returns E[T] = M mu + sqrt(M) sigma B_N, the mean compute time of the slowest of N workers. B_N
  // is gumbel_largest_normal(N).
  double slowest_s() const;
  // Returns the expected number of micro-batches that a worker ends before the threshold. It is the
  // sum over m = 1 .. M of Phi((threshold - m mu) / (sqrt(m) sigma)), with the standard normal
  // distribution Phi.
  double completed(double threshold_s) const;
  // Predicts the effect of a threshold. The ratio of micro-batches per time with it and without it
  // is S_eff = completed/M (E[T] + T_c) / (min(threshold, E[T]) + T_c).
  ThresholdPrediction predict(double threshold_s) const;
  // Returns the prediction for the best threshold among the multiples of step_s > 0 up to E[T].
  // Tries 10^6 multiples at most.
  ThresholdPrediction best(double step_s) const;
};

}  // namespace leeway::budget
