// The message sizes of a run: "4K" to "16M" by a factor, as nccl-tests' -b, -e and -f.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "leeway/status.h"

namespace leeway::tools::perf {

// Parses bytes with an optional binary suffix: "4096", "4K", "16M", "1G", "4KiB", "4KB" (powers of
// 1024).
Result<std::size_t> parse_bytes(std::string_view text);

// Returns bytes_min, bytes_min * factor, ... as far as bytes_max. Requires factor >= 2 and 1 <=
// bytes_min <= bytes_max.
Result<std::vector<std::size_t>> sweep(std::size_t bytes_min, std::size_t bytes_max,
                                       std::size_t factor);

}  // namespace leeway::tools::perf
