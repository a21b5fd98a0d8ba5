// The ratio of gradient to noise, averaged over about the last hundred steps of a run.
//
// In a single step, |gradient|^2 is a small difference of large numbers, and may be negative. So
// this divides averages, and does not average ratios.
#pragma once

#include <optional>

#include "estimate/noise.h"
#include "leeway/report.h"

namespace leeway::tools::train {

class NoiseLog {
 public:
  // Number of steps after which a report's weight has fallen to 1/e. Ratios change with the
  // learning rate, over hundreds of steps.
  static constexpr double kMemorySteps = 100.0;

  // Adds a report, unless it was not measured or is not finite, which would spoil the average for
  // ever.
  void add(const NoiseReport& report);

  // Returns nullopt before the first report that was added.
  std::optional<estimate::NoiseEstimate> mean() const;

 private:
  estimate::NoiseAverage average_{kMemorySteps};
};

}  // namespace leeway::tools::train
