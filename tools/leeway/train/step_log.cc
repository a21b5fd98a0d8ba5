#include "train/step_log.h"

#include <algorithm>
#include <cmath>

namespace leeway::tools::train {
namespace {

// Weight of the newest loss in the moving average that is shown. An average is shown because the
// loss of one step is too noisy.
constexpr double kShownLossWeight = 0.05;

}  // namespace

StepLog::StepLog(std::uint64_t steps) : steps_(steps) {
  step_ms_.reserve(steps);
}

void StepLog::add(std::optional<double> loss, double step_ms) {
  if (loss && shown_loss_) loss = *shown_loss_ + kShownLossWeight * (*loss - *shown_loss_);
  if (loss) shown_loss_ = loss;
  step_ms_.push_back(step_ms);
  total_ms_ += step_ms;
}

StepStatus StepLog::status(double loss_observed) const {
  const double mean_ms = total_ms_ / static_cast<double>(step_ms_.size());
  return {step_ms_.size(), steps_, shown_loss_.value_or(0.0), mean_ms, loss_observed};
}

double StepLog::percentile_ms(double fraction) const {
  std::vector<double> sorted = step_ms_;
  std::sort(sorted.begin(), sorted.end());
  const auto rank =
      static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace leeway::tools::train
