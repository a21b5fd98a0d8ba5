// `leeway codec bench`: measures how fast each conversion is, compared with memcpy and y += x on
// the same float32 values in the same process.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "codec/instruction_sets.h"
#include "leeway/codec.h"

namespace leeway::tools::codecs {

struct BenchSettings {
  std::vector<CodecOptions> codecs;
  std::vector<std::size_t> sizes;  // bytes of float32 in each buffer, ascending
  // If true, every instruction set of this processor is measured, not only the best one.
  bool all_targets = false;
  std::chrono::microseconds sample_time{3000};  // time of one conversion in one round
  std::string json_path;
};

// The speed of one conversion: its median over rounds, and the medians of its ratios to the
// references (memcpy and y += x), which are measured in the same rounds.
struct Speed {
  double gigabytes_per_second = 0.0;  // bytes of float32
  double to_copy = 0.0;
  double to_add = 0.0;
};

// Speeds of one codec on one instruction set at one size. An encode speed is empty if the codec
// does not have that kind of rounding.
struct BenchRow {
  std::string codec;
  std::string target;  // name of an instruction set, or kDefinition
  std::size_t bytes = 0;
  std::optional<Speed> encode_nearest;
  std::optional<Speed> encode_stochastic;
  std::optional<Speed> decode;
  std::optional<Speed> accumulate;
  double copy = 0.0;  // GB/s of the references beside this row
  double add = 0.0;
};

inline constexpr const char* kDefinition = "definition";

using BenchProgress =
    std::function<void(std::size_t done, std::size_t total, const BenchRow& next)>;

// Measures all rows, in the order of settings.codecs, then of targets, then of sizes. The
// definition is measured at the first size only, because its speed is limited by computation and
// not by memory. Changes the instruction set of the whole process meanwhile, and restores it.
std::vector<BenchRow> measure_bench(const BenchSettings& settings, const BenchProgress& progress);

}  // namespace leeway::tools::codecs
