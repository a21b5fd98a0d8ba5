#include "budget/timing_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/contracts.h"

namespace leeway::budget {
namespace {

// Beyond this many deviations the normal distribution's tail is too small to matter in a double.
constexpr double kFar = 38.0;

// Returns 1 - Phi(z), the upper tail of the standard normal distribution.
double tail(double z) {
  return 0.5 * std::erfc(z / std::numbers::sqrt2);
}

// Returns z with tail(z) = probability, 0 < probability < 1, by bisection.
double tail_quantile(double probability) {
  double low = -kFar;
  double high = kFar;
  while (true) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) return middle;
    (tail(middle) > probability ? low : high) = middle;
  }
}

}  // namespace

double gumbel_largest_normal(std::uint32_t n) {
  LEEWAY_ASSERT(n >= 1);
  if (n == 1) return 0.0;
  constexpr double kEuler = std::numbers::egamma;
  return (1.0 - kEuler) * tail_quantile(1.0 / n) +
         kEuler * tail_quantile(1.0 / (std::numbers::e * n));
}

double TimingModel::slowest_s() const {
  return micro_batches * micro_batch_mean_s +
         std::sqrt(micro_batches) * micro_batch_deviation_s * gumbel_largest_normal(workers);
}

double TimingModel::completed(double threshold_s) const {
  double sum = 0.0;
  for (std::uint32_t m = 1; m <= micro_batches; ++m) {
    const double left = threshold_s - m * micro_batch_mean_s;
    const double deviation = std::sqrt(m) * micro_batch_deviation_s;
    sum += deviation > 0.0 ? tail(-left / deviation) : (left >= 0.0 ? 1.0 : 0.0);
  }
  return sum;
}

ThresholdPrediction TimingModel::predict(double threshold_s) const {
  const double kept = completed(threshold_s) / micro_batches;
  const double slowest = slowest_s();
  const double faster = (slowest + overhead_s) / (std::min(threshold_s, slowest) + overhead_s);
  return {threshold_s, 1.0 - kept, kept * faster - 1.0};
}

ThresholdPrediction TimingModel::best(double step_s) const {
  LEEWAY_ASSERT(step_s > 0.0);
  const auto candidates = std::clamp(slowest_s() / step_s, 1.0, 1e6);
  ThresholdPrediction best = predict(step_s);
  for (std::uint32_t i = 2; i <= static_cast<std::uint32_t>(candidates); ++i) {
    const ThresholdPrediction next = predict(i * step_s);
    if (next.effective_speedup > best.effective_speedup) best = next;
  }
  return best;
}

}  // namespace leeway::budget
