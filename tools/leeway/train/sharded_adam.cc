#include "train/sharded_adam.h"

#include <algorithm>
#include <cmath>

namespace leeway::tools::train {

ShardedAdam::ShardedAdam(std::size_t count, const AdamOptions& options)
    : options_(options), mean_(count, 0.0F), mean_square_(count, 0.0F) {}

void ShardedAdam::step(std::span<float> parameters, std::span<const float> gradient,
                       double learning_rate) {
  ++steps_;
  const auto beta1 = static_cast<float>(options_.beta1);
  const auto beta2 = static_cast<float>(options_.beta2);
  const auto epsilon = static_cast<float>(options_.epsilon);
  // Corrects the bias of the two moments, which start at zero.
  const double correction1 = 1.0 - std::pow(options_.beta1, static_cast<double>(steps_));
  const double correction2 = 1.0 - std::pow(options_.beta2, static_cast<double>(steps_));
  const auto rate = static_cast<float>(learning_rate / correction1);
  const auto scale = static_cast<float>(1.0 / std::sqrt(correction2));
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    const float g = gradient[i];
    mean_[i] = beta1 * mean_[i] + (1.0F - beta1) * g;
    mean_square_[i] = beta2 * mean_square_[i] + (1.0F - beta2) * g * g;
    parameters[i] -= rate * mean_[i] / (std::sqrt(mean_square_[i]) * scale + epsilon);
  }
}

double learning_rate_at(std::uint64_t step, std::uint64_t steps, double peak) {
  return learning_rate_at(step, steps, steps, peak);
}

double learning_rate_at(std::uint64_t step, std::uint64_t steps_expected, std::uint64_t steps,
                        double peak) {
  const auto planned = static_cast<double>(steps);
  const double warm_up = std::max(1.0, 0.1 * planned);
  // This is exactly step + 1 if steps_expected == steps.
  const double done =
      planned * (static_cast<double>(step) + 1.0) / static_cast<double>(steps_expected);
  if (done <= warm_up) return peak * done / warm_up;
  const double phase = (done - warm_up) / (planned - warm_up + 1.0);
  return peak * 0.5 * (1.0 + std::cos(M_PI * phase));
}

}  // namespace leeway::tools::train
