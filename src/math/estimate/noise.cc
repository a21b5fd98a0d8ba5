#include "estimate/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/contracts.h"

namespace leeway::estimate {
namespace {

// Least separation (see estimate_noise()) at which gradient and dispersion can be told apart. The
// measured difference is divided by the separation, so its error is amplified by at most 64.
constexpr double kSeparationMin = 1.0 / 64.0;

// Returns sqrt(signal / noise); infinite without noise.
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

std::optional<NoiseEstimate> estimate_noise(const NoiseStatistics& statistics) {
  LEEWAY_ASSERT(statistics.ranks >= 1);
  const double contribution = statistics.contribution_mean_square;
  const WeightMoments& weights = statistics.weights;
  NoiseEstimate estimate{.gain = statistics.shrinks ? weights.sum : 1.0,
                         .encoded_share = weights.encoded_squares};
  estimate.quantisation_variance =
      estimate.encoded_share * statistics.quantisation_variance + statistics.spread_variance;
  if (statistics.ranks == 1) {
    estimate.gradient_mean_square = contribution;
    return estimate;
  }
  // Three equations give gradient, dispersion and guess, the error of the control variate:
  //   contribution = gradient + dispersion
  //   control = dispersion + guess
  //   result = sum_squared gradient + squares dispersion + control_squares guess
  //            + encoded_squares quantisation
  const WeightMoments& measured = statistics.measured_weights;
  const double control = statistics.control_mean_square;
  const double separation = measured.sum_squared - measured.squares + measured.control_squares;
  if (separation < kSeparationMin) return std::nullopt;
  const double clean = statistics.result_mean_square -
                       measured.encoded_squares * statistics.quantisation_variance -
                       measured.control_squares * (control - contribution);
  estimate.gradient_mean_square = (clean - measured.squares * contribution) / separation;
  estimate.dispersion = contribution - estimate.gradient_mean_square;
  const double gain = estimate.gain;
  const double moved = weights.sum_squared - 2.0 * gain * weights.sum + gain * gain;
  const double spread =
      weights.squares - 2.0 * gain * weights.fair_products + gain * gain * weights.fair_squares;
  estimate.loss_variance = moved * estimate.gradient_mean_square + spread * estimate.dispersion +
                           weights.control_squares * (control - estimate.dispersion);
  return estimate;
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
  blend(sum_.encoded_share, step.encoded_share);
}

NoiseEstimate NoiseAverage::estimate() const {
  if (empty()) return {};
  const double gradient = sum_.gradient_mean_square / weight_;
  return {.gradient_mean_square = gradient,
          .dispersion = sum_.dispersion / weight_,
          .quantisation_variance = sum_.quantisation_variance / weight_,
          .loss_variance = sum_.loss_variance / weight_,
          .gain = sum_.gain / weight_,
          .encoded_share = sum_.encoded_share / weight_,
          .gradient_error = gradient_error(gradient)};
}

// Returns the standard error of a weighted mean. The mean's variance is share = sum w^2 / (sum w)^2
// times the variance of one step. The steps' mean squared distance to the mean (`apart`) is on
// average 1 - share times the variance of one step.
double NoiseAverage::gradient_error(double gradient) const {
  const double share = squared_weight_ / (weight_ * weight_);
  if (!(share < 1.0)) return 0.0;
  const double apart = std::max(0.0, gradient_squares_ / weight_ - gradient * gradient);
  return std::sqrt(apart * share / (1.0 - share));
}

}  // namespace leeway::estimate
