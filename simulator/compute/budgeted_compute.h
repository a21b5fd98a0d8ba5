// Ranks that compute in micro-batches and stop at a threshold. A scenario's drop_compute gives the
// noise, and the library's gate and search (src/math/budget) decide.
//
// Every micro-batch is drawn, computed or not, so a run draws the same times whatever its threshold
// is. It can then tell how long its steps would have lasted without a threshold.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "budget/step_gate.h"
#include "compute/auto_threshold.h"
#include "compute/compute_time.h"
#include "compute/drop_compute.h"
#include "engine/random_stream.h"
#include "scenario.pb.h"

namespace leeway::sim {

class BudgetedCompute {
 public:
  // `ranks`: the most ranks that there are, numbered from 0.
  BudgetedCompute(const scenario::Compute::DropCompute& compute, std::uint32_t ranks);

  // Draws a rank's next round, which begins now. Its micro-batches last `slow_f32` / 2^32 times as
  // long.
  ComputeDraw draw(Instant now, std::uint32_t rank, std::uint32_t round, RandomStream& stream,
                   std::uint64_t slow_f32);

  // Returns the choice of the last search, or null if none was made.
  const budget::ThresholdChoice* choice() const {
    return automatic_ ? automatic_->choice() : nullptr;
  }

 private:
  Instant compute_step(Instant now, budget::StepGate& gate) const;

  DropComputeNoise noise_;
  std::uint32_t warm_up_rounds_;
  std::uint64_t forward_f32_;  // share of a micro-batch, times 2^32
  bool fixed_maximum_;
  std::optional<AutoThreshold> automatic_;
  std::vector<budget::StepGate> gates_;     // by rank
  std::vector<std::int64_t> latencies_ns_;  // latencies in the step that is drawn
};

}  // namespace leeway::sim
