#include "collective/noise_meter.h"

#include "codec/mean_square.h"

namespace leeway::collective {

void NoiseMeter::Mean::add(std::span<const float> values, double factor) {
  sum += factor * factor * codec::sum_of_squares(values);
  elements += values.size();
}

void NoiseMeter::Mean::add_difference(std::span<const float> a, std::span<const float> b,
                                      double factor) {
  sum += factor * factor * codec::sum_of_squared_differences(a, b);
  elements += a.size();
}

void NoiseMeter::add_control(std::span<const float> contribution, double factor,
                             std::span<const float> control, double control_factor) {
  for (std::size_t i = 0; i < contribution.size(); ++i) {
    const double apart = factor * contribution[i] - control_factor * control[i];
    control_.sum += apart * apart;
  }
  control_.elements += contribution.size();
}

std::span<const float> NoiseMeter::decoded(const codec::Format& format, const codec::Place& place,
                                           ByteSpan encoded, std::size_t elements) {
  decoded_.reserve(elements * sizeof(float));
  const std::span values(reinterpret_cast<float*>(decoded_.data()), elements);
  codec::decode(format, encoded, place, values);
  return values;
}

estimate::NoiseStatistics NoiseMeter::complete(estimate::NoiseStatistics known) const {
  known.result_mean_square = result_.value();
  known.contribution_mean_square = contribution_.value();
  known.control_mean_square = control_.value();
  known.quantisation_variance = encoded_.value();
  known.spread_variance = spread_.value();
  known.weights = weights_.over(elements_);
  known.measured_weights = measured_weights_.over(static_cast<double>(result_.elements));
  return known;
}

NoiseReport report_of(const estimate::NoiseEstimate& estimate, double loss) {
  return {.measured = true,
          .gradient_mean_square = estimate.gradient_mean_square,
          .dispersion = estimate.dispersion,
          .quantisation_variance = estimate.quantisation_variance,
          .loss_variance = estimate.loss_variance,
          .loss = loss,
          .gain = estimate.gain,
          .ratio = estimate.ratio()};
}

}  // namespace leeway::collective
