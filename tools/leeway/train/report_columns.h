// The numbers of a report by column: one value a seed, of the lossy runs or of the twins. Internal
// to the report's files.
#pragma once

#include <functional>
#include <vector>

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

// All zero in ddp mode, where the ranks' models were compared and found equal.
DriftSummary drift_of(const RunResult& run);
double age_max_seen(const RunResult& run);

}  // namespace leeway::tools::train
