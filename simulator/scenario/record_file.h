// Files that a scenario refers to: recorded times and recorded losses. An error names the file
// and, where there is one, the line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "leeway/status.h"

namespace leeway::sim::scenario {

// Larger files are refused, whatever they hold.
inline constexpr std::size_t kRecordBytesMax = std::size_t{1} << 26;

// What a file of times may hold.
struct TimeRules {
  std::size_t count_max = kRecordBytesMax;
  double ms_max = 0;
  bool comments = false;  // lines that begin with # are skipped
};
// One number a line, in ms, at least one; empty lines are skipped.
Result<std::vector<std::int64_t>> read_times_ns(const std::string& path, TimeRules rules);

// 0 (arrives) and 1 (lost), at least one of them; white space is skipped.
Result<std::vector<bool>> read_fates(const std::string& path);

}  // namespace leeway::sim::scenario
