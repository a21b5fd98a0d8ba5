// Ranks that compute in micro-batches and stop at a threshold. A scenario's drop_compute gives the
// noise of compute times. The library's gate and search (src/math/budget) decide when to stop.
//
// Times are also drawn for micro-batches that are not computed. So the draws do not depend on the
// threshold, and a run can report how long its steps would have lasted without a threshold.
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
  // `ranks`: one more than the largest rank.
  BudgetedCompute(const scenario::Compute::DropCompute& compute, std::uint32_t ranks);

  // Draws the times of a rank's next round, which begins at `now`. Each micro-batch lasts
  // `slow_f32` / 2^32 times as long as the distribution says.
  ComputeDraw draw(Instant now, std::uint32_t rank, std::uint32_t round, RandomStream& stream,
                   std::uint64_t slow_f32);

  // Returns the result of the latest threshold search, or null before the first.
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
