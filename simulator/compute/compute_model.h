// Distributions of compute times for ranks without micro-batches. Parameters are integers, so that
// draws need integer arithmetic only.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "engine/random_stream.h"
#include "leeway/status.h"
#include "scenario.pb.h"

namespace leeway::sim {

struct ConstantTime {
  std::int64_t ns = 0;
};
struct LognormalTime {
  std::int64_t median_ns = 0;
  std::uint64_t sigma_f32 = 0;
};
struct HeavyTailTime {
  std::int64_t minimum_ns = 0;
  std::uint64_t inverse_alpha_f32 = 0;
};
struct PeriodicTime {
  std::int64_t base_ns = 0;
  std::int64_t extra_ns = 0;
  std::uint32_t every = 1;
  std::uint32_t offset = 0;
};
struct TraceTime {
  std::vector<std::int64_t> ns;  // round r takes element r modulo the size
};

using ComputeModel =
    std::variant<ConstantTime, LognormalTime, HeavyTailTime, PeriodicTime, TraceTime>;

// Makes the model of any kind but drop_compute, which BudgetedCompute handles. Reads a trace's
// file.
Result<ComputeModel> compute_model(const scenario::Compute& compute);

// Draws a compute time in ns. The time is `slow_f32` / 2^32 times as long as the model says.
std::int64_t draw(const ComputeModel& model, RandomStream& stream, std::uint32_t round,
                  std::uint64_t slow_f32);

}  // namespace leeway::sim
