// Noise that quantisation and packet loss put on a gradient, compared with the gradient itself.
//
// A step of ideal length along a gradient with independent noise of variance v per element makes
// f(x) = 1/(1 + x^2) of the progress that the exact gradient would make, x = sqrt(v)/rms(gradient).
// f falls fastest at its inflection, x = 1/sqrt(3), where 3/4 of the progress is left. Hence the
// rule of arXiv 2505.19115: keep rms(gradient) >= sqrt(3 v), or spend more bits or more
// reliability.
//
// The functions are pure. They take measured mean squares, and the weights by which a result summed
// its contributions (WeightMoments). So they hold for any estimator, any links, any pattern of
// loss. Contributions are means per unit of work. Derivations: README.md, "Noise".
#pragma once

#include <cstdint>
#include <optional>

#include "estimate/scale_plan.h"

namespace leeway::estimate {

// sqrt(3): the least gradient-to-noise ratio that is worth keeping.
inline constexpr double kCriticalRatio = 1.7320508075688772;

// Part of the ideal progress that a step makes under this gradient-to-noise ratio (>= 0 or
// infinite): 1/(1 + 1/ratio^2). It is 3/4 at the critical ratio.
constexpr double step_progress(double ratio) {
  if (!(ratio > 1.0)) return ratio * ratio / (1.0 + ratio * ratio);
  return 1.0 / (1.0 + 1.0 / (ratio * ratio));
}

// The measurements of one averaging operation. Means are over elements of one shard, or of all.
struct NoiseStatistics {
  std::uint32_t ranks = 1;
  // Mean square of the result as its owner formed it, through loss and quantisation of the reduce
  // half, before the spread half encodes it.
  double result_mean_square = 0.0;
  // Mean square of g_i, rank i's contribution before it is encoded; the mean over ranks, or one
  // rank's.
  double contribution_mean_square = 0.0;
  // Mean of (g_i - c)^2 for an external control variate c.
  double control_mean_square = 0.0;
  // Mean of (Q(g_i) - g_i)^2 for an encoded contribution; 0 if contributions are sent exactly.
  double quantisation_variance = 0.0;
  // Mean of (Q(r) - r)^2 for the encoding of the result r in the spread half.
  double spread_variance = 0.0;
  // Weights by which the contributions entered the result: over all elements, and over those in
  // result_mean_square.
  WeightMoments weights;
  WeightMoments measured_weights;
  // Set for zero_fill, which does not make up for missing contributions, so that its result is the
  // mean times `gain`. Noise is then the distance to gain * mean; otherwise it is the distance to
  // the mean.
  bool shrinks = false;
};

// All values are per element. Except `gain` they are linear in the measured means and unbiased, so
// values of single steps can be negative and should be averaged over steps.
struct NoiseEstimate {
  double gradient_mean_square = 0.0;   // of the exact gradient; negative if noise dominates
  double dispersion = 0.0;             // S2: variance of one rank's contribution around it
  double quantisation_variance = 0.0;  // of the result, from both halves
  double loss_variance = 0.0;          // the result's mean square distance to gain * (mean of g_i)
  double gain = 1.0;  // fraction of the gradient in this result; below 1 for zero_fill
  // Factor with which one encoded contribution's variance enters quantisation_variance.
  double encoded_share = 0.0;
  // Standard error of gradient_mean_square, from the spread of the averaged steps. 0 if not known.
  double gradient_error = 0.0;

  double variance() const { return quantisation_variance + loss_variance; }
  // Returns the rms of the gradient's part of the result over the rms of the noise (the
  // contributions' own spread is no noise). Infinite without noise. 0 if the gradient is lost in
  // noise or a value is NaN. Never NaN.
  double ratio() const;
  // The ratio if the true gradient is two standard errors above the estimate. Where ratio() is 0,
  // this ratio tells a gradient that is lost in noise from a gradient that was measured too
  // coarsely.
  double ratio_at_most() const;
  // The fraction of a step's progress that this noise costs, for an average over `ranks`
  // contributions. Their own spread B = dispersion / ranks slows progress, too, and is always
  // there. So with G = gradient_mean_square, (G + B) / (G + B + variance()) of the progress is
  // left. 0 to 1; 1/4 at the critical ratio if B = 0.
  double progress_lost(std::uint32_t ranks) const;
};

// Returns whether more bits or more reliability would be worth having: the ratio is below the
// critical one even two standard errors up, and the noise costs a quarter of the progress or more.
bool is_costly(const NoiseEstimate& noise, std::uint32_t ranks);

// Estimates the noise of one operation. With a single rank the contribution is the gradient and all
// noise is quantisation. Returns nullopt if the measured packets have too few contributions to tell
// gradient from dispersion. This depends on arrivals, not on values, so the mean over steps with an
// estimate is unbiased.
std::optional<NoiseEstimate> estimate_noise(const NoiseStatistics& statistics);

// Estimates averaged over steps with exponential forgetting. It gives the ratio of averages, not
// the average of ratios: a single step's |gradient|^2 is a small difference of large numbers, and a
// ratio of noisy values is biased.
class NoiseAverage {
 public:
  // `memory` >= 1: number of steps after which a value's weight has fallen to 1/e.
  explicit NoiseAverage(double memory = 16.0);

  // Adds a step. Steps without an estimate are left out, as are those with a value that is not
  // finite (an overflowed gradient): one of them would stay in the average for good.
  void add(const NoiseStatistics& statistics) {
    if (const auto step = estimate_noise(statistics)) add(*step);
  }
  // Adds one step's estimate, without its gradient_error.
  void add(const NoiseEstimate& step);
  // Weighted mean over the added steps. While there are none, all are zero and the ratio is
  // infinite. The standard error takes the steps as independent, and is 0 after a single one.
  NoiseEstimate estimate() const;
  bool empty() const { return weight_ == 0.0; }

 private:
  double gradient_error(double gradient) const;

  double decay_;
  double weight_ = 0.0;            // sum of the weights of all steps so far
  double squared_weight_ = 0.0;    // sum of their squares
  double gradient_squares_ = 0.0;  // weighted sum of the gradient_mean_square's squares
  NoiseEstimate sum_{.gain = 0.0};
};

}  // namespace leeway::estimate
