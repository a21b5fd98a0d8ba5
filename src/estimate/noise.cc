#include "estimate/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/contracts.h"
#include "estimate/binomial_moments.h"

namespace leeway::estimate {
namespace {

// Losses beyond this count as this, which bounds the weights 1/q to 16.
constexpr double kLossMax = 15.0 / 16.0;

// Least difference of the two moments that separate gradient from dispersion; below it the estimate
// would be the measured difference times more than 64.
constexpr double kSeparationMin = 1.0 / 64.0;

// Second moments of the weights w_i by which a result sums its contributions; o is the owner. With
// contributions g_i = gradient + deviation of variance S2,
//   E[result^2] = sum_squared * gradient^2 + squares * S2 + encoded_squares * (variance of Q).
struct WeightMoments {
  double gain = 1.0;             // E[sum w]
  double sum_squared = 1.0;      // E[(sum w)^2]
  double squares = 1.0;          // E[sum w^2]
  double encoded_squares = 0.0;  // E[sum w^2 without the owner's], which is not encoded
};

// Without loss every estimator weighs each rank by 1/N.
WeightMoments lossless_moments(double n) {
  return {1.0, 1.0, 1.0 / n, (n - 1.0) / (n * n)};
}

// w_o = 1/N, w_i = R_i/N.
WeightMoments zero_fill_moments(double n, double p) {
  const double q = 1.0 - p;
  const double others = (n - 1.0) / (n * n);
  const double gain = (1.0 + (n - 1.0) * q) / n;
  return {gain, gain * gain + others * p * q, 1.0 / (n * n) + others * q, others * q};
}

// Everyone who is there has 1/(1+K). E[1/(1+K)^2] over n-1 others is E[1/K; K >= 1]/(nq) over n.
WeightMoments ratio_moments(std::uint32_t n, double p) {
  const double squares = mean_owner_share(n, p);
  const double own = mean_inverse_count(n, p) / (n * (1.0 - p));
  return {1.0, 1.0, squares, squares - own};
}

// The same with the owner drawn like the others; with nobody left the result is 0.
WeightMoments symmetric_moments(std::uint32_t n, double p) {
  const double some = 1.0 - std::pow(p, n);
  const double squares = mean_inverse_count(n, p);
  return {some, some, squares, squares * (n - 1.0) / n};
}

// w_o = 1/N, the K others that are there share the rest; alone, the owner has all.
WeightMoments stratified_moments(std::uint32_t n, double p) {
  const double alone = std::pow(p, n - 1.0);
  const double rest = (n - 1.0) / n;
  const double others = rest * rest * mean_inverse_count(n - 1, p);
  return {1.0, 1.0, (1.0 - alone) / (1.0 * n * n) + others + alone, others};
}

// w_o = 1/N, w_i = R_i/(N q).
WeightMoments horvitz_thompson_moments(double n, double p) {
  const double others = (n - 1.0) / (n * n * (1.0 - p));
  return {1.0, 1.0 + others * p, 1.0 / (n * n) + others, others};
}

// What the rescaled others have too much or too little goes to the control variate. The owner's own
// contribution in that place adds the variance of their sum to its weight.
WeightMoments augmented_moments(double n, double p, bool external_control) {
  WeightMoments moments = horvitz_thompson_moments(n, p);
  if (!external_control) moments.squares += moments.sum_squared - 1.0;
  moments.sum_squared = 1.0;
  return moments;
}

WeightMoments moments_of_equal_weights(const NoiseStatistics& statistics) {
  const std::uint32_t n = statistics.ranks;
  const double p = std::clamp(statistics.loss, 0.0, kLossMax);
  if (n == 1 || p == 0.0) return lossless_moments(n);
  switch (statistics.estimator) {
    case Estimator::zero_fill:
      return zero_fill_moments(n, p);
    case Estimator::ratio:
      return ratio_moments(n, p);
    case Estimator::symmetric_ratio:
      return symmetric_moments(n, p);
    case Estimator::stratified:
      return stratified_moments(n, p);
    case Estimator::horvitz_thompson:
      return horvitz_thompson_moments(n, p);
    case Estimator::augmented:
      return augmented_moments(n, p, statistics.external_control);
  }
  return lossless_moments(n);
}

// Unequal weights make sums of squared shares larger by their concentration, in the mean over
// owners: exact for estimators that treat every link by itself, an approximation for the pooled
// ones.
WeightMoments moments_of(const NoiseStatistics& statistics) {
  WeightMoments moments = moments_of_equal_weights(statistics);
  moments.squares *= statistics.concentration;
  moments.encoded_squares *= statistics.concentration;
  const bool by_link = statistics.estimator == Estimator::zero_fill ||
                       statistics.estimator == Estimator::horvitz_thompson;
  if (by_link) {
    const double kept = moments.gain * moments.gain;
    moments.sum_squared = kept + (moments.sum_squared - kept) * statistics.concentration;
  }
  return moments;
}

// That of sqrt(signal / noise); infinite without noise.
double ratio_of(double signal, double noise) {
  if (!(noise > 0.0)) return std::numeric_limits<double>::infinity();
  return std::sqrt(std::max(0.0, signal) / noise);
}

bool is_finite(const NoiseEstimate& estimate) {
  return std::isfinite(estimate.gradient_mean_square) && std::isfinite(estimate.dispersion) &&
         std::isfinite(estimate.variance()) && std::isfinite(estimate.gain);
}

}  // namespace

double NoiseEstimate::ratio() const {
  return is_finite(*this) ? gain * ratio_of(gradient_mean_square, variance()) : 0.0;
}

double NoiseEstimate::ratio_at_most() const {
  if (!is_finite(*this)) return 0.0;
  return gain * ratio_of(gradient_mean_square + 2.0 * gradient_error, variance());
}

double NoiseEstimate::progress_lost(std::uint32_t ranks) const {
  LEEWAY_ASSERT(ranks >= 1);
  if (!is_finite(*this)) return 1.0;
  const double average = std::max(0.0, gradient_mean_square + dispersion / ranks);
  const double noise = variance() / (gain * gain);
  return noise > 0.0 ? noise / (average + noise) : 0.0;
}

bool is_costly(const NoiseEstimate& noise, std::uint32_t ranks) {
  return noise.ratio_at_most() < kCriticalRatio &&
         noise.progress_lost(ranks) > 1.0 - step_progress(kCriticalRatio);
}

NoiseEstimate estimate_noise(const NoiseStatistics& statistics) {
  LEEWAY_ASSERT(statistics.ranks >= 1);
  const WeightMoments weights = moments_of(statistics);
  const double encoding = weights.encoded_squares * statistics.quantisation_variance;
  const double contribution = statistics.contribution_mean_square;

  NoiseEstimate estimate{.gain = weights.gain};
  estimate.quantisation_variance = encoding + statistics.spread_variance;
  if (statistics.ranks == 1) {
    estimate.gradient_mean_square = contribution;
    return estimate;
  }
  // Two equations: contribution = gradient + dispersion, and WeightMoments' for the result.
  const double separation = weights.sum_squared - weights.squares;
  if (!(separation < kSeparationMin)) {
    const double clean = statistics.result_mean_square - encoding;
    estimate.gradient_mean_square = (clean - weights.squares * contribution) / separation;
  }
  estimate.dispersion = contribution - estimate.gradient_mean_square;
  const double kept = weights.gain * weights.gain;
  estimate.loss_variance =
      (weights.sum_squared - kept) * estimate.gradient_mean_square +
      (weights.squares - kept * statistics.concentration / statistics.ranks) * estimate.dispersion;
  return estimate;
}

double quantisation_share(std::uint32_t ranks, double loss, Estimator estimator) {
  LEEWAY_ASSERT(ranks >= 1);
  return moments_of({.ranks = ranks, .loss = loss, .estimator = estimator}).encoded_squares;
}

NoiseAverage::NoiseAverage(double memory) : decay_(std::exp(-1.0 / memory)) {
  LEEWAY_ASSERT(memory >= 1.0);
}

void NoiseAverage::add(const NoiseEstimate& step) {
  if (!is_finite(step)) return;
  const auto blend = [this](double& sum, double value) { sum = decay_ * sum + value; };
  blend(weight_, 1.0);
  squared_weight_ = decay_ * decay_ * squared_weight_ + 1.0;
  blend(gradient_squares_, step.gradient_mean_square * step.gradient_mean_square);
  blend(sum_.gradient_mean_square, step.gradient_mean_square);
  blend(sum_.dispersion, step.dispersion);
  blend(sum_.quantisation_variance, step.quantisation_variance);
  blend(sum_.loss_variance, step.loss_variance);
  blend(sum_.gain, step.gain);
}

NoiseEstimate NoiseAverage::estimate() const {
  if (empty()) return {};
  const double gradient = sum_.gradient_mean_square / weight_;
  return {.gradient_mean_square = gradient,
          .dispersion = sum_.dispersion / weight_,
          .quantisation_variance = sum_.quantisation_variance / weight_,
          .loss_variance = sum_.loss_variance / weight_,
          .gain = sum_.gain / weight_,
          .gradient_error = gradient_error(gradient)};
}

// Of a weighted mean: its variance is share times that of one step, share = sum w^2 / (sum w)^2;
// the steps' squared distance to their own mean is (1 - share) times that on average.
double NoiseAverage::gradient_error(double gradient) const {
  const double share = squared_weight_ / (weight_ * weight_);
  if (!(share < 1.0)) return 0.0;
  const double apart = std::max(0.0, gradient_squares_ / weight_ - gradient * gradient);
  return std::sqrt(apart * share / (1.0 - share));
}

}  // namespace leeway::estimate
