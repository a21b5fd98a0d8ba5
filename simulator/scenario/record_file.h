// Reads files of recorded times and recorded losses that a scenario names. An error names the file,
// and also the line if it is about one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "leeway/status.h"

namespace leeway::sim::scenario {

// Limit on the size of a file. Larger files are refused.
inline constexpr std::size_t kRecordBytesMax = std::size_t{1} << 26;

// Limits on the contents of a file of times.
struct TimeRules {
  std::size_t count_max = kRecordBytesMax;
  double ms_max = 0;
  bool comments = false;  // lines that begin with # are skipped
};
// Reads a file of times, one number of ms per line, and returns them in ns. The file must have at
// least one number. Empty lines are skipped.
Result<std::vector<std::int64_t>> read_times_ns(const std::string& path, TimeRules rules);

// Reads a file of 0 (arrives) and 1 (lost), at least one of them. White space is skipped.
Result<std::vector<bool>> read_fates(const std::string& path);

}  // namespace leeway::sim::scenario
