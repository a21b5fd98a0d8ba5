#include "train/train_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/report_columns.h"

namespace leeway::tools::train {

double change_percent(double perplexity, double perplexity_twin) {
  return 100.0 * (perplexity / perplexity_twin - 1.0);
}

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  const auto count = static_cast<double>(values.size());
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  spread.min = *std::min_element(values.begin(), values.end());
  spread.max = *std::max_element(values.begin(), values.end());
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.standard_deviation = std::sqrt(squares / (count - 1.0));
  return spread;
}

double speedup(const RunResult& run, const RunResult& without) {
  return run.samples_per_second() / without.samples_per_second();
}

std::vector<Column> columns_of(const TrainReport& report) {
  if (!report.outcomes.front().no_threshold) return {Column::lossy, Column::twin};
  return {Column::lossy, Column::no_threshold, Column::twin};
}

std::vector<RunResult> runs_of(const TrainReport& report, Column column) {
  std::vector<RunResult> runs;
  for (const SeedOutcome& outcome : report.outcomes) {
    const auto& other = column == Column::twin ? outcome.twin : outcome.no_threshold;
    if (column == Column::lossy) {
      runs.push_back(outcome.lossy);
    } else if (other) {
      runs.push_back(*other);
    }
  }
  return runs;
}

std::vector<double> values_of(const TrainReport& report, Column column, const Field& field) {
  std::vector<double> values;
  for (const RunResult& run : runs_of(report, column)) values.push_back(field(run));
  return values;
}

std::vector<double> speedups(const TrainReport& report) {
  std::vector<double> values;
  for (const SeedOutcome& outcome : report.outcomes) {
    if (outcome.no_threshold) values.push_back(speedup(outcome.lossy, *outcome.no_threshold));
  }
  return values;
}

std::vector<double> values_of(const TrainReport& report,
                              std::optional<double> ComputeSummary::*member) {
  std::vector<double> values;
  for (const SeedOutcome& outcome : report.outcomes) {
    if (const auto& value = outcome.lossy.compute.*member) values.push_back(*value);
  }
  return values;
}

std::vector<double> changes_percent(const TrainReport& report) {
  std::vector<double> values;
  for (const SeedOutcome& outcome : report.outcomes) {
    if (!outcome.twin) continue;
    values.push_back(change_percent(outcome.lossy.perplexity, outcome.twin->perplexity));
  }
  return values;
}

double mean(const std::vector<double>& values) {
  return spread_of(values).mean;
}
double largest(const std::vector<double>& values) {
  return spread_of(values).max;
}

std::optional<estimate::NoiseEstimate> noise_of(const TrainReport& report, Column column) {
  estimate::NoiseEstimate sum{.gain = 0.0};
  double count = 0;
  double squared_errors = 0;  // seeds err independently
  for (const RunResult& run : runs_of(report, column)) {
    if (!run.noise) continue;
    ++count;
    sum.gradient_mean_square += run.noise->gradient_mean_square;
    sum.dispersion += run.noise->dispersion;
    sum.quantisation_variance += run.noise->quantisation_variance;
    sum.loss_variance += run.noise->loss_variance;
    sum.gain += run.noise->gain;
    squared_errors += run.noise->gradient_error * run.noise->gradient_error;
  }
  if (count == 0) return std::nullopt;
  return estimate::NoiseEstimate{.gradient_mean_square = sum.gradient_mean_square / count,
                                 .dispersion = sum.dispersion / count,
                                 .quantisation_variance = sum.quantisation_variance / count,
                                 .loss_variance = sum.loss_variance / count,
                                 .gain = sum.gain / count,
                                 .gradient_error = std::sqrt(squared_errors) / count};
}

std::optional<double> gradient_to_noise(const std::optional<estimate::NoiseEstimate>& noise) {
  if (!noise || std::isinf(noise->ratio())) return std::nullopt;
  return noise->ratio();
}

double rms(double mean_square) {
  return std::sqrt(std::max(0.0, mean_square));
}

DriftSummary drift_of(const RunResult& run) {
  return run.drift.value_or(DriftSummary{});
}
double ComputeSummary::drop_rate() const {
  if (planned == 0) return 0.0;
  return 1.0 - static_cast<double>(completed) / static_cast<double>(planned);
}

double RunResult::samples_per_second() const {
  return seconds > 0 ? static_cast<double>(compute.samples) / seconds : 0.0;
}

double age_max_seen(const RunResult& run) {
  return drift_of(run).age_max_seen;
}

}  // namespace leeway::tools::train
