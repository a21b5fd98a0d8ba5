// The lines of the table of `leeway train`. Internal to the report's files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/report_columns.h"
#include "train/train_report.h"

namespace leeway::tools::train {

// A row: the name of a number, and its value in each run.
std::string row(const char* name, const std::vector<std::string>& texts);
// A row like row(), from one text for each column.
std::string row_by_column(const TrainReport& report, const char* name,
                          const std::function<std::string(Column)>& text);
// The mean of a number over the seeds, for every column.
std::string row_of(const TrainReport& report, const char* name, const char* pattern,
                   const Field& field);
// Returns the row of a text that has a value for the lossy runs only.
std::string row_of_lossy(const TrainReport& report, const char* name, const std::string& text);

// Returns the header's line: micro-batches, stragglers and threshold; no text where nothing is
// delayed or dropped.
std::string compute_header(const ComputeSettings& compute);
// Returns samples a second and what was dropped; no text where nothing was delayed or dropped.
std::string compute_rows(const TrainReport& report);
// Returns what a threshold gained; no text without one.
std::string speedup_line(const TrainReport& report);

// The gradient, and the noise that quantisation and packet loss add to it.
std::string noise_rows(const TrainReport& report);
// Returns the steps of a run by codec, a mean over seeds; no text unless Codec::automatic chose.
std::string codec_rows(const TrainReport& report);
// Returns no text unless the noise of the lossy runs is costly (estimate::is_costly).
std::string noise_warning(const TrainReport& report);

}  // namespace leeway::tools::train
