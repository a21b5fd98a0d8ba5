// The gradient against its noise, averaged over the last hundred steps or so of a run.
//
// The |gradient|^2 of a single step is a small difference of large numbers and may be negative. So
// the ratio of averages is used, and not the average of ratios.
#pragma once

#include <optional>

#include "estimate/noise.h"
#include "leeway/report.h"

namespace leeway::tools::train {

class NoiseLog {
 public:
  // Number of steps after which a report counts 1/e. Ratios change with the learning rate, over
  // hundreds of steps.
  static constexpr double kMemorySteps = 100.0;

  // Adds a report. Leaves out one that was not measured or is not finite, because it would stay in
  // the average for ever.
  void add(const NoiseReport& report);

  // Returns nullopt before the first report that counts.
  std::optional<estimate::NoiseEstimate> mean() const;

 private:
  estimate::NoiseAverage average_{kMemorySteps};
};

}  // namespace leeway::tools::train
