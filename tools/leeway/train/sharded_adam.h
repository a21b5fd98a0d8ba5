// Adam over a contiguous part of a flat parameter vector, and the schedule of the learning rate.
//
// Adam updates each element independently. So the owner of a shard, with moments for its shard only
// (ZeRO-1), computes bit for bit what an Adam over the whole vector would compute there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leeway::tools::train {

struct AdamOptions {
  double beta1 = 0.9;
  // Adam's 0.999 remembers too long: runs of some hundred steps would still divide by the first
  // gradients' squares.
  double beta2 = 0.95;
  double epsilon = 1e-8;
};

class ShardedAdam {
 public:
  explicit ShardedAdam(std::size_t count, const AdamOptions& options = {});

  // Makes one step on `parameters` with `gradient`. Both hold the `count` elements of this part.
  void step(std::span<float> parameters, std::span<const float> gradient, double learning_rate);

 private:
  AdamOptions options_;
  std::uint64_t steps_ = 0;
  std::vector<float> mean_;
  std::vector<float> mean_square_;
};

// Returns the rate of a step: a linear warm-up over the first tenth, then half a cosine to nearly
// zero at the last step. As steps become smaller, so do the errors of stale parameters.
double learning_rate_at(std::uint64_t step, std::uint64_t steps, double peak);
// Returns the rate in a run that compensates for dropped samples by more steps, `steps_expected` in
// all. The rate follows the share of all samples that have been used.
double learning_rate_at(std::uint64_t step, std::uint64_t steps_expected, std::uint64_t steps,
                        double peak);

}  // namespace leeway::tools::train
