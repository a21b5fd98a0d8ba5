// Losses and times of a training run's steps, for the progress line and the report.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "train/progress.h"

namespace leeway::tools::train {

class StepLog {
 public:
  explicit StepLog(std::uint64_t steps);

  // Adds a step. `loss` is the mean of this rank's micro-batches, or nullopt if it completed none.
  void add(std::optional<double> loss, double step_ms);

  // Must be called after add().
  StepStatus status(double loss_observed) const;
  // Returns a percentile of step times by the nearest-rank method. `fraction`: 0 .. 1.
  double percentile_ms(double fraction) const;

  std::uint64_t steps() const { return step_ms_.size(); }
  double seconds() const { return total_ms_ / 1e3; }

 private:
  std::uint64_t steps_;
  std::vector<double> step_ms_;
  double total_ms_ = 0;
  std::optional<double> shown_loss_;
};

}  // namespace leeway::tools::train
