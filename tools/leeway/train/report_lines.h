// The lines of the table of `leeway train`. Internal to the report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/report_columns.h"
#include "train/train_report.h"

namespace leeway::tools::train {

// Returns a line of the table: a name, and a text for each run.
std::string row(const char* name, const std::vector<std::string>& texts);
// Returns a line of the table with the texts that `text` makes for each column.
std::string row_by_column(const TrainReport& report, const char* name,
                          const std::function<std::string(Column)>& text);
// Returns a line of the table with the mean of a number over the seeds, for each column.
std::string row_of(const TrainReport& report, const char* name, const char* pattern,
                   const Field& field);
// Returns a line of the table with a text in the column of the lossy runs only.
std::string row_of_lossy(const TrainReport& report, const char* name, const std::string& text);

// Returns a line for the header: micro-batches, stragglers and threshold. Returns no text if
// nothing is delayed or dropped.
std::string compute_header(const ComputeSettings& compute);
// Returns the lines for samples a second and dropped work. Returns no text if nothing was delayed
// or dropped.
std::string compute_rows(const TrainReport& report);
// Returns the line for the speedup by a threshold. Returns no text without one.
std::string speedup_line(const TrainReport& report);

// Returns the lines for the gradient, and for the noise that quantisation and packet loss add to
// it.
std::string noise_rows(const TrainReport& report);
// Returns the number of steps in each codec, as a mean over seeds. Returns no text unless
// Codec::automatic chose.
std::string codec_rows(const TrainReport& report);
// Returns a warning if the noise of the lossy runs is costly (estimate::is_costly), otherwise no
// text.
std::string noise_warning(const TrainReport& report);

}  // namespace leeway::tools::train
