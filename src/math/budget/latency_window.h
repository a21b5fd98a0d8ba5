// The micro-batch latencies of one rank over a window of steps. The latency of a micro-batch that a
// step did not run is unknown, but the search for a threshold needs it. The window imputes it from
// the micro-batches that this rank did run.
//
// A micro-batch given up after a time t would have lasted longer. It gets the next completed
// latency above t, or t if there is none. A micro-batch that never began gets the next completed
// latency. "Next" goes through the completed latencies cyclically, in the order in which they ran,
// so that the outcome is a function of the window alone.
//
// If latencies do not depend on their place in the step, imputing is unbiased, but for the part of
// a long micro-batch beyond all completed latencies. If latencies do depend on their place (a slow
// second half of every step, say), late micro-batches that were not run wrongly count like early
// ones.
// Not thread-safe; allocates when constructed only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "budget/threshold_search.h"

namespace leeway::budget {

class LatencyWindow {
 public:
  // For windows of 1 .. kWindowStepsMax steps with 1 .. kMicroBatchesMax micro-batches each.
  LatencyWindow(std::uint32_t steps, std::uint32_t micro_batches);

  void clear();
  bool full() const { return steps_ == steps_max_; }
  std::uint32_t steps() const { return steps_; }

  // Adds a step that has ended. `completed`: latencies of its micro-batches in ns, each 0 ..
  // kLatencyMaxNs. `aborted_after`: time for which a micro-batch ran before it was given up. Must
  // not be called if full().
  void add_step(std::span<const std::int64_t> completed, std::optional<Duration> aborted_after);

  // Imputes the unknown latencies, and returns all latencies of the full window. The table is valid
  // until the window is cleared. It is empty if nothing was completed in any step.
  LatencyTable table();

 private:
  std::int64_t next_completed(std::int64_t above_ns);

  std::uint32_t steps_max_;
  std::uint32_t micro_batches_;
  std::uint32_t steps_ = 0;
  std::size_t turn_ = 0;          // index into completed_ns_
  std::vector<std::int64_t> ns_;  // [step][micro-batch]; below 0 if unknown
  // [step] compute time until the step ended, for whatever reason.
  std::vector<std::int64_t> computed_ns_;
  std::vector<std::int64_t> completed_ns_;
};

}  // namespace leeway::budget
