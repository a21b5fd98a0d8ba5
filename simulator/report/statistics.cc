#include "report/statistics.h"

#include <algorithm>
#include <cmath>

#include "run/percentile.h"

namespace leeway::sim {

Spread spread_of(std::span<const double> values) {
  Spread spread;
  double sum = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    spread.min = spread.count == 0 ? value : std::min(spread.min, value);
    spread.max = spread.count == 0 ? value : std::max(spread.max, value);
    ++spread.count;
  }
  if (spread.count == 0) return spread;
  const auto count = static_cast<double>(spread.count);
  spread.mean = sum / count;
  if (spread.count == 1) return spread;
  double squares = 0;
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - spread.mean) * (value - spread.mean);
  }
  spread.deviation = std::sqrt(squares / (count - 1));
  spread.error = spread.deviation / std::sqrt(count);
  return spread;
}

Percentiles percentiles_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::sort(values.begin(), values.end());
  Percentiles result;
  result.count = values.size();
  if (values.empty()) return result;
  result.mean = spread_of(values).mean;
  result.p50 = percentile(values, 500);
  result.p90 = percentile(values, 900);
  result.p99 = percentile(values, 990);
  result.p99_9 = percentile(values, 999);
  result.min = values.front();
  result.max = values.back();
  return result;
}

}  // namespace leeway::sim
