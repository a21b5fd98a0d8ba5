// How long a rank computes before it submits a round: the straggler models of a scenario.
//
// Integers decide every time, and a rank's draws depend on the seed, its number and its own model
// only. A rank that no `compute` entry names takes no time; a later entry replaces an earlier one,
// as does a later `slow` entry of the same rank in the rounds that both cover.
#pragma once

#include <cstdint>
#include <memory>

#include "base/time.h"
#include "budget/threshold_search.h"
#include "compute/micro_batches.h"
#include "leeway/status.h"
#include "scenario.pb.h"

namespace leeway::sim {

// A rank's computation in a round.
struct ComputeDraw {
  std::int64_t ns = 0;
  std::int64_t full_ns = 0;  // the time that it would have taken without a threshold
  // A rank that works in one piece counts as the largest planned number of micro-batches of the
  // scenario's ranks with DropCompute. So its contribution counts as much as a whole one of theirs.
  MicroBatches micro_batches;
  double weight = 1;  // weight that the contribution, the sum over micro-batches, declares
  std::int64_t threshold_ns = 0;  // threshold in force, or 0
};

class ComputeTimes {
 public:
  // The scenario is valid. Trace files are read here; an error names the file and the line.
  static Result<ComputeTimes> make(const scenario::Scenario& scenario, std::uint64_t seed);

  ComputeTimes(ComputeTimes&&) noexcept;
  ComputeTimes& operator=(ComputeTimes&&) noexcept;
  ~ComputeTimes();

  // Called once per rank and round, when the rank begins the round, with rounds rising. Slow ranks
  // (Scenario.slow) are included. With DropCompute they drop more, since the clock of the threshold
  // is not slow.
  ComputeDraw draw(Instant now, std::uint32_t rank, std::uint32_t round);

  // Returns the choice of the last search for an automatic threshold, or null if none was made.
  const budget::ThresholdChoice* choice() const;

 private:
  struct State;
  explicit ComputeTimes(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace leeway::sim
