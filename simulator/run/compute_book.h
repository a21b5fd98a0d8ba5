// Measures what compute thresholds do to a run's steps: how much work is dropped, how long steps
// last, and how long they would have lasted without a threshold.
//
// The last figure needs no second run, because times are drawn also for micro-batches that are not
// computed. Without its threshold, a round would last longer by the dropped work of its slowest
// rank.
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

  // Returns the measures "compute.*" over the finished rounds that had a threshold, or over all
  // rounds if none had one. Returns none if no rank computes in micro-batches. `searched` is the
  // result of the search for an automatic threshold, or null.
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
