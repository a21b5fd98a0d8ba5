// Sums every rank's own counts over the group.
#pragma once

#include <optional>

#include "leeway/communicator.h"
#include "leeway/replica.h"
#include "train/data_parallel.h"
#include "train/trainer.h"

namespace leeway::tools::train {

// One rank's counts and measurements.
struct RankFigures {
  Traffic traffic;
  std::optional<estimate::NoiseEstimate> noise;
  std::optional<DriftReport> drift;
};

// Fills the traffic, noise and drift fields of `result`; exact, and collective: all ranks call it
// and get the same.
Status sum_over_group(Communicator& communicator, const RankFigures& figures, RunResult& result);

// Makes the same numbers from sums over ranks. Separate, so that it can be tested alone.
struct GroupSums {
  static constexpr std::size_t kTrafficFields = 5;
  static constexpr std::size_t kNoiseFields = 7;
  static constexpr std::size_t kDriftFields = 7;
  std::array<double, kTrafficFields + kNoiseFields + kDriftFields + kAgeBins> values{};

  static GroupSums of(const RankFigures& figures);
  void store(int ranks, bool has_drift, RunResult& result) const;
};

}  // namespace leeway::tools::train
