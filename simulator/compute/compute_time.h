// How long a rank computes before it submits a round: the straggler models of a scenario.
//
// Times are computed in integers. A rank's draws depend only on the seed, its number and its own
// model. A rank without a `compute` entry takes no time. If several `compute` entries name a rank,
// the last entry applies. If several `slow` entries of a rank cover a round, the last entry
// applies.
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
  // For a rank without DropCompute, both numbers are the largest planned number of any rank with
  // DropCompute. So its contribution weighs as much as a complete contribution of such a rank.
  MicroBatches micro_batches;
  double weight = 1;  // weight that the contribution, the sum over micro-batches, declares
  std::int64_t threshold_ns = 0;  // threshold in force, or 0
};

class ComputeTimes {
 public:
  // `scenario` must be valid. make() reads its trace files; an error names the file and the line.
  static Result<ComputeTimes> make(const scenario::Scenario& scenario, std::uint64_t seed);

  ComputeTimes(ComputeTimes&&) noexcept;
  ComputeTimes& operator=(ComputeTimes&&) noexcept;
  ~ComputeTimes();

  // Draws a rank's computation. Call it once per rank and round, in rising rounds, when the round
  // begins. Slow ranks (Scenario.slow) take longer. With DropCompute they also drop more, because
  // the threshold stays the same.
  ComputeDraw draw(Instant now, std::uint32_t rank, std::uint32_t round);

  // Returns the result of the latest search for an automatic threshold, or null before the first.
  const budget::ThresholdChoice* choice() const;

 private:
  struct State;
  explicit ComputeTimes(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace leeway::sim
