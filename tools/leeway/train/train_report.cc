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

std::vector<double> of_lossy(const TrainReport& report, const Field& field) {
  std::vector<double> values;
  for (const SeedOutcome& outcome : report.outcomes) values.push_back(field(outcome.lossy));
  return values;
}

std::vector<double> of_twin(const TrainReport& report, const Field& field) {
  std::vector<double> values;
  for (const SeedOutcome& outcome : report.outcomes) {
    if (outcome.twin) values.push_back(field(*outcome.twin));
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

namespace {

std::optional<aggregate::NoiseEstimate> mean_noise(const std::vector<RunResult>& runs) {
  aggregate::NoiseEstimate sum;
  double count = 0;
  for (const RunResult& run : runs) {
    if (!run.noise) continue;
    ++count;
    sum.gradient_mean_square += run.noise->gradient_mean_square;
    sum.dispersion += run.noise->dispersion;
    sum.quantisation_variance += run.noise->quantisation_variance;
    sum.loss_variance += run.noise->loss_variance;
  }
  if (count == 0) return std::nullopt;
  return aggregate::NoiseEstimate{.gradient_mean_square = sum.gradient_mean_square / count,
                                  .dispersion = sum.dispersion / count,
                                  .quantisation_variance = sum.quantisation_variance / count,
                                  .loss_variance = sum.loss_variance / count};
}

}  // namespace

std::optional<aggregate::NoiseEstimate> noise_of_lossy(const TrainReport& report) {
  std::vector<RunResult> runs;
  for (const SeedOutcome& outcome : report.outcomes) runs.push_back(outcome.lossy);
  return mean_noise(runs);
}

std::optional<aggregate::NoiseEstimate> noise_of_twin(const TrainReport& report) {
  std::vector<RunResult> runs;
  for (const SeedOutcome& outcome : report.outcomes) {
    if (outcome.twin) runs.push_back(*outcome.twin);
  }
  return mean_noise(runs);
}

std::optional<double> gradient_to_noise(const std::optional<aggregate::NoiseEstimate>& noise) {
  if (!noise || std::isinf(noise->ratio())) return std::nullopt;
  return noise->ratio();
}

double rms(double mean_square) {
  return std::sqrt(std::max(0.0, mean_square));
}

DriftSummary drift_of(const RunResult& run) {
  return run.drift.value_or(DriftSummary{});
}
double age_max_seen(const RunResult& run) {
  return drift_of(run).age_max_seen;
}

}  // namespace leeway::tools::train
