// The numbers of a report by column: one value for each seed and run. Internal to the report.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "estimate/noise.h"
#include "train/train_report.h"

namespace leeway::tools::train {

enum class Column : std::uint8_t { lossy, no_threshold, twin };

// Returns the table's columns: lossy runs and twins, even if there were no twins, and between the
// two the runs without threshold, if there were any.
std::vector<Column> columns_of(const TrainReport& report);

// Returns the results of a column's runs; none if there were no such runs.
std::vector<RunResult> runs_of(const TrainReport& report, Column column);

using Field = std::function<double(const RunResult&)>;
std::vector<double> values_of(const TrainReport& report, Column column, const Field& field);

// These return one value for each seed: the lossy run's change against its twin, and its speedup
// against the run without threshold. They return no values if there were no such runs.
std::vector<double> changes_percent(const TrainReport& report);
std::vector<double> speedups(const TrainReport& report);
// Returns the value for each seed whose lossy run has one.
std::vector<double> values_of(const TrainReport& report,
                              std::optional<double> ComputeSummary::*member);

// `values` must not be empty.
double mean(const std::vector<double>& values);
double largest(const std::vector<double>& values);

// Returns mean squares averaged over the seeds that measured noise, or nullopt if none did.
std::optional<estimate::NoiseEstimate> noise_of(const TrainReport& report, Column column);
// Returns the ratio, or nullopt if there is no noise.
std::optional<double> gradient_to_noise(const std::optional<estimate::NoiseEstimate>& noise);
// Returns the square root, or 0 for a negative estimate.
double rms(double mean_square);

// Returns zeros in ddp mode, in which the ranks' models have been found equal.
DriftSummary drift_of(const RunResult& run);
double age_max_seen(const RunResult& run);

}  // namespace leeway::tools::train
