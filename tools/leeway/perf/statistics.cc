#include "perf/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace leeway::tools::perf {

double percentile(std::span<const double> values, double fraction) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto position =
      static_cast<std::size_t>(std::lround(fraction * static_cast<double>(sorted.size() - 1)));
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(position),
                   sorted.end());
  return sorted[position];
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> slowest_rank(std::span<const double> all, std::size_t iterations) {
  std::vector<double> slowest(iterations, 0.0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    slowest[i % iterations] = std::max(slowest[i % iterations], all[i]);
  }
  return slowest;
}

}  // namespace leeway::tools::perf
