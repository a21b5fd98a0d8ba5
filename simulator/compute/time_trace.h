// A file of durations: milliseconds, one a line, at least one. Blank lines and lines that begin
// with # are skipped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/status.h"

namespace leeway::sim {

inline constexpr double kTraceMsMax = 1e9;

// Returns the durations in nanoseconds. An error names the file and the line.
Result<std::vector<std::int64_t>> parse_time_trace(std::string_view text,
                                                   const std::string& file_name);
Result<std::vector<std::int64_t>> read_time_trace(const std::string& path);

}  // namespace leeway::sim
