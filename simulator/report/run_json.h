// Converts a run record to text and back, to keep finished runs on disk. The record that is read
// equals the written one to the last bit, except that any NaN may become another NaN.
#pragma once

#include <string>
#include <string_view>

#include "leeway/status.h"
#include "run/run_record.h"

namespace leeway::sim {

inline constexpr int kRunFormat = 1;

std::string run_json(const RunRecord& run);

// Returns kInvalidArgument for any text that run_json() did not write: cut off, changed or in
// another format.
Result<RunRecord> parse_run_json(std::string_view text);

}  // namespace leeway::sim
