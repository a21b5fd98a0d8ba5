// A run record as text, for keeping finished runs on disk. The record that is read equals the one
// that was written, to the last bit of every number (a NaN is some NaN).
#pragma once

#include <string>
#include <string_view>

#include "leeway/status.h"
#include "run/run_record.h"

namespace leeway::sim {

inline constexpr int kRunFormat = 1;

std::string run_json(const RunRecord& run);

// Returns kInvalidArgument for any text that run_json() did not write: cut, changed or of another
// format.
Result<RunRecord> parse_run_json(std::string_view text);

}  // namespace leeway::sim
