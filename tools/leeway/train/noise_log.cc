#include "train/noise_log.h"

#include <cmath>

namespace leeway::tools::train {
namespace {

bool is_finite(const NoiseReport& report) {
  return std::isfinite(report.gradient_mean_square) && std::isfinite(report.dispersion) &&
         std::isfinite(report.quantisation_variance) && std::isfinite(report.loss_variance);
}

}  // namespace

void NoiseLog::add(const NoiseReport& report) {
  if (!report.measured || !is_finite(report)) return;
  const double decay = std::exp(-1.0 / kMemorySteps);
  const auto blend = [decay](double& sum, double value) { sum = decay * sum + value; };
  blend(weight_, 1.0);
  blend(sums_.gradient_mean_square, report.gradient_mean_square);
  blend(sums_.dispersion, report.dispersion);
  blend(sums_.quantisation_variance, report.quantisation_variance);
  blend(sums_.loss_variance, report.loss_variance);
  blend(sums_.gain, report.gain);
}

std::optional<estimate::NoiseEstimate> NoiseLog::mean() const {
  if (weight_ == 0.0) return std::nullopt;
  return estimate::NoiseEstimate{.gradient_mean_square = sums_.gradient_mean_square / weight_,
                                 .dispersion = sums_.dispersion / weight_,
                                 .quantisation_variance = sums_.quantisation_variance / weight_,
                                 .loss_variance = sums_.loss_variance / weight_,
                                 .gain = sums_.gain / weight_};
}

}  // namespace leeway::tools::train
