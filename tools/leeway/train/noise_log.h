// The gradient against its noise, averaged over the last hundred steps or so of a run.
//
// A single step's |gradient|^2 is a small difference of large numbers and may come out negative;
// the ratio of averages means something where the average of ratios does not.
#pragma once

#include <optional>

#include "estimate/noise.h"
#include "leeway/report.h"

namespace leeway::tools::train {

class NoiseLog {
 public:
  // Steps after which a report counts 1/e: ratios move with the learning rate, over hundreds.
  static constexpr double kMemorySteps = 100.0;

  // Leaves out what was not measured, and what is not finite: it would stay in the average for
  // good.
  void add(const NoiseReport& report);

  // Returns nullopt before the first report that counts.
  std::optional<estimate::NoiseEstimate> mean() const;

 private:
  estimate::NoiseAverage average_{kMemorySteps};
};

}  // namespace leeway::tools::train
