// Statistics over seeds and over pooled records.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "run/percentile.h"

namespace leeway::sim {

// Statistics of values; values that are not finite are ignored. A member is kUnknown if there are
// too few values for it.
struct Spread {
  std::size_t count = 0;
  double mean = kUnknown;
  double deviation = kUnknown;  // deviation of a value: over count - 1
  double error = kUnknown;      // standard error of the mean: deviation / sqrt(count)
  double min = kUnknown;
  double max = kUnknown;
};
Spread spread_of(std::span<const double> values);

struct Percentiles {
  std::size_t count = 0;
  double mean = kUnknown;
  double p50 = kUnknown;
  double p90 = kUnknown;
  double p99 = kUnknown;
  double p99_9 = kUnknown;
  double min = kUnknown;
  double max = kUnknown;
};
// Returns percentiles of the finite values.
Percentiles percentiles_of(std::vector<double> values);

}  // namespace leeway::sim
