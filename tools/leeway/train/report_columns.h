// The numbers of a report by column: one value for each seed and run. Internal to the report's
// files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "estimate/noise.h"
#include "train/train_report.h"

namespace leeway::tools::train {

enum class Column : std::uint8_t { lossy, no_threshold, twin };

// Returns the table's columns: the lossy runs and the twins, even if those were not made, and
// between them the runs without threshold, if there are any.
std::vector<Column> columns_of(const TrainReport& report);

// Returns no results if the runs were not made.
std::vector<RunResult> runs_of(const TrainReport& report, Column column);

using Field = std::function<double(const RunResult&)>;
std::vector<double> values_of(const TrainReport& report, Column column, const Field& field);

// Returns one value for each seed; none without twins, or without runs that drop nothing.
std::vector<double> changes_percent(const TrainReport& report);
std::vector<double> speedups(const TrainReport& report);
// A value for every seed whose lossy run has it.
std::vector<double> values_of(const TrainReport& report,
                              std::optional<double> ComputeSummary::*member);

// `values` must not be empty.
double mean(const std::vector<double>& values);
double largest(const std::vector<double>& values);

// Mean squares averaged over the seeds that measured noise; nullopt if no seed did.
std::optional<estimate::NoiseEstimate> noise_of(const TrainReport& report, Column column);
// Returns nullopt where there is no noise.
std::optional<double> gradient_to_noise(const std::optional<estimate::NoiseEstimate>& noise);
// Returns 0 for estimates that are negative.
double rms(double mean_square);

// All values are zero in ddp mode, where the ranks' models were compared and found equal.
DriftSummary drift_of(const RunResult& run);
double age_max_seen(const RunResult& run);

}  // namespace leeway::tools::train
