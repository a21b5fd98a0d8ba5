// The lines of the table of `leeway train`. Internal to the report's files.
#pragma once

#include <string>

#include "train/train_report.h"

namespace leeway::tools::train {

// printf into a string, of 511 characters at most.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

// A number's name and what the two runs say of it.
std::string row(const char* name, const std::string& lossy, const std::string& twin);

// The gradient beside what quantisation and packet loss put on it.
std::string noise_rows(const TrainReport& report);
// Empty unless Codec::automatic chose: the steps of a run by codec, a mean over seeds.
std::string codec_rows(const TrainReport& report);
// Empty unless the lossy runs' gradient-to-noise ratio is below the critical one.
std::string noise_warning(const TrainReport& report);

}  // namespace leeway::tools::train
