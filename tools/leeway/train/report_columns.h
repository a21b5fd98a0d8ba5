// The numbers of a report by column: one value a seed, of the lossy runs or of the twins. Internal
// to the report's files.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "aggregate/noise.h"
#include "train/train_report.h"

namespace leeway::tools::train {

using Field = std::function<double(const RunResult&)>;

std::vector<double> of_lossy(const TrainReport& report, const Field& field);

// These two are empty without twins.
std::vector<double> of_twin(const TrainReport& report, const Field& field);
std::vector<double> changes_percent(const TrainReport& report);

// `values` must not be empty.
double mean(const std::vector<double>& values);
double largest(const std::vector<double>& values);

// Mean squares averaged over the seeds that measured noise; none: no seed did.
std::optional<aggregate::NoiseEstimate> noise_of_lossy(const TrainReport& report);
std::optional<aggregate::NoiseEstimate> noise_of_twin(const TrainReport& report);
// None where there is no noise.
std::optional<double> gradient_to_noise(const std::optional<aggregate::NoiseEstimate>& noise);
// 0 for estimates that came out negative.
double rms(double mean_square);

// All zero in ddp mode, where the ranks' models were compared and found equal.
DriftSummary drift_of(const RunResult& run);
double age_max_seen(const RunResult& run);

}  // namespace leeway::tools::train
