// Formats the output of `leeway codec bench`.
#pragma once

#include <span>
#include <string>

#include "codec/benchmark.h"
#include "codec/machine.h"

namespace leeway::tools::codecs {

// Returns one table for each size, at most 80 columns wide.
std::string bench_text(std::span<const BenchRow> rows, const Machine& machine);

// Returns JSON: {"machine": {...}, "rows": [{"codec", "target", "bytes", "encode_nearest": {"GBps",
// "to_memcpy", "to_add"} or null, ...}]}
std::string bench_json(std::span<const BenchRow> rows, const Machine& machine);

}  // namespace leeway::tools::codecs
