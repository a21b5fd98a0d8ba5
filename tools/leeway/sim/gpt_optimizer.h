// Adam for many ranks that mostly do the same: those with equal histories share one state and one
// computed step.
//
// A rank's state is what its own ShardedAdam would be, bit for bit. Ranks whose state, gradient and
// parameters are equal, compared bit by bit, get copies of one result; a rank for which any of them
// differs gets a state of its own from then on. Nothing is assumed about the order of ranks or
// rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "train/sharded_adam.h"

namespace leeway::tools::simulation {

class GptOptimizer {
 public:
  explicit GptOptimizer(std::uint32_t ranks) : states_(ranks) {}

  // One step of `rank` on elements offset .. offset + gradient.size() of its model, which are
  // `parameters`. A rank must give the same part every time.
  void step(std::uint32_t rank, std::size_t offset, std::span<const float> gradient,
            std::span<float> parameters, double learning_rate);

  // Returns the number of steps that were computed, not copied from an equal step.
  std::uint64_t steps_computed() const { return steps_computed_; }

 private:
  using State = std::shared_ptr<const train::ShardedAdam>;  // null before the first step

  struct Step {
    State before;
    std::size_t offset = 0;
    double learning_rate = 0;
    std::vector<float> gradient;
    std::vector<float> parameters_before;
    State after;
    std::vector<float> parameters_after;
  };

  const Step& compute(const State& before, std::size_t offset, std::span<const float> gradient,
                      std::span<const float> parameters, double learning_rate);

  std::vector<State> states_;  // by rank
  std::deque<Step> recent_;    // the latest first
  std::uint64_t steps_computed_ = 0;
};

}  // namespace leeway::tools::simulation
