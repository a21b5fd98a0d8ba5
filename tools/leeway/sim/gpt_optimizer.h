// Adam for many ranks. Ranks with equal histories share one state, and each of their steps is
// computed once.
//
// Each rank's result is bit for bit what a ShardedAdam of its own would compute. Ranks share a
// state as long as their states, gradients and parameters are equal bit by bit. A rank that differs
// gets a state of its own. Results do not depend on the order in which ranks make their steps.
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

  // Makes one step of `rank` on elements offset .. offset + gradient.size() of its model.
  // `parameters` are these elements. The range must be the same at every step.
  void step(std::uint32_t rank, std::size_t offset, std::span<const float> gradient,
            std::span<float> parameters, double learning_rate);

  // Returns the number of computed steps, without copies of equal steps.
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
