// Effects of compute thresholds on a run's steps: how much work is left undone, how long steps
// last, and how long the same steps would have lasted without a threshold.
//
// The same steps without a threshold need no run of their own, because every micro-batch is drawn
// whether it is computed or not. A round without a threshold is this run's round, prolonged by the
// work that its slowest rank would have continued with.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "compute/compute_time.h"
#include "run/run_record.h"

namespace leeway::sim {

class ComputeBook {
 public:
  explicit ComputeBook(const scenario::Scenario& scenario) : scenario_(scenario) {}

  // Call it when a rank begins to compute a round.
  void on_begin(Instant now, std::uint32_t round, const ComputeDraw& draw);

  // Returns the measures "compute.*" over the finished rounds in which a threshold was in force, or
  // over all rounds if none ever was. Returns no measures if no rank computes in micro-batches.
  // `searched` is the result of the search for an automatic threshold, or null.
  std::vector<Measure> measures(const std::vector<RoundRecord>& rounds,
                                const budget::ThresholdChoice* searched) const;

 private:
  struct Round {
    std::int64_t first_begin_ns = INT64_MAX;
    std::int64_t last_end_ns = 0;  // when the slowest rank ended its compute
    // When the slowest rank would have ended without a threshold.
    std::int64_t last_full_end_ns = 0;
    std::int64_t threshold_ns = 0;  // sum over ranks
    std::uint64_t completed = 0;
    std::uint64_t planned = 0;
    std::uint32_t ranks = 0;
    std::uint32_t with_threshold = 0;  // ranks with a threshold
  };
  struct Totals;

  Totals totals_of(const std::vector<RoundRecord>& rounds) const;
  void append_predictions(const Totals& totals, std::vector<Measure>& out) const;

  const scenario::Scenario& scenario_;
  std::vector<Round> rounds_;  // by number
};

}  // namespace leeway::sim
