// Sums the ranks' counts and measurements over the group.
#pragma once

#include <optional>

#include "leeway/communicator.h"
#include "leeway/replica.h"
#include "train/data_parallel.h"
#include "train/trainer.h"

namespace leeway::tools::train {

struct RankFigures {
  Traffic traffic;
  std::optional<estimate::NoiseEstimate> noise;
  std::optional<DriftReport> drift;
};

// Fills the traffic, noise and drift fields of `result` with exact sums or means over ranks. All
// ranks must call it together, and get the same result.
Status sum_over_group(Communicator& communicator, const RankFigures& figures, RunResult& result);

// Computes the fields of `result` from sums over ranks. It is separate so that tests can call it.
struct GroupSums {
  static constexpr std::size_t kTrafficFields = 5;
  static constexpr std::size_t kNoiseFields = 7;
  static constexpr std::size_t kDriftFields = 7;
  std::array<double, kTrafficFields + kNoiseFields + kDriftFields + kAgeBins> values{};

  static GroupSums of(const RankFigures& figures);
  void store(int ranks, bool has_drift, RunResult& result) const;
};

}  // namespace leeway::tools::train
