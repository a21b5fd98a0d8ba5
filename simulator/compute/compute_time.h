// How long a rank computes before it submits a round: the straggler models of a scenario.
//
// Integers decide every time, and a rank's draws depend on the seed, its number and its own model
// only. A rank that no `compute` entry names takes no time; a later entry replaces an earlier one,
// as does a later `slow` entry of the same rank in the rounds that both cover.
#pragma once

#include <cstdint>
#include <memory>

#include "leeway/status.h"
#include "scenario.pb.h"

namespace leeway::sim {

struct ComputeDraw {
  std::int64_t ns = 0;
  double weight = 1;  // share of the planned micro-batches that was completed; below 1 with a
                      // DropCompute threshold only
};

class ComputeTimes {
 public:
  // The scenario is valid. Trace files are read here; an error names the file and the line.
  static Result<ComputeTimes> make(const scenario::Scenario& scenario, std::uint64_t seed);

  ComputeTimes(ComputeTimes&&) noexcept;
  ComputeTimes& operator=(ComputeTimes&&) noexcept;
  ~ComputeTimes();

  // Asked once per rank and round, rounds rising. Slow ranks (Scenario.slow) included: with
  // DropCompute they drop more, since the clock of the threshold is not slow.
  ComputeDraw draw(std::uint32_t rank, std::uint32_t round);

 private:
  struct State;
  explicit ComputeTimes(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace leeway::sim
