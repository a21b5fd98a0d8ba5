#include "train/noise_log.h"

namespace leeway::tools::train {

void NoiseLog::add(const NoiseReport& report) {
  if (!report.measured) return;
  average_.add({.gradient_mean_square = report.gradient_mean_square,
                .dispersion = report.dispersion,
                .quantisation_variance = report.quantisation_variance,
                .loss_variance = report.loss_variance,
                .gain = report.gain});
}

std::optional<estimate::NoiseEstimate> NoiseLog::mean() const {
  if (average_.empty()) return std::nullopt;
  return average_.estimate();
}

}  // namespace leeway::tools::train
