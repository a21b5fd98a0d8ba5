// Ranks that compute in micro-batches and stop at a threshold: the noise of a scenario's
// drop_compute, and the gate and the search that ship (src/math/budget) deciding about it.
//
// Every micro-batch is drawn, computed or not, so that a run draws the same times whatever its
// threshold, and tells how long its steps would have lasted without one.
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
  // For at most `ranks` ranks, numbered from 0.
  BudgetedCompute(const scenario::Compute::DropCompute& compute, std::uint32_t ranks);

  // A rank's next round, which it begins now. `slow_f32` prolongs its micro-batches, times 2^32.
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
