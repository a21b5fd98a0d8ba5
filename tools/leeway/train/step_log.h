// Data that a training loop keeps for its progress line, and for its report about time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "train/progress.h"

namespace leeway::tools::train {

class StepLog {
 public:
  explicit StepLog(std::uint64_t steps);

  // `loss` of this rank's micro-batches, or nullopt if it completed none.
  void add(std::optional<double> loss, double step_ms);

  // At least one step must have been added.
  StepStatus status(double loss_observed) const;
  // Nearest rank, fraction 0 .. 1.
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
