// Adam over a contiguous part of a flat parameter vector, and the learning rate over a run.
//
// Adam works on each element independently. So the owner of a shard that updates only its part
// (ZeRO-1) computes, bit for bit, what an Adam over the whole vector would compute there. Moments
// exist for that part only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leeway::tools::train {

struct AdamOptions {
  double beta1 = 0.9;
  // Shorter memory than Adam's 0.999: runs of some hundred steps would otherwise divide by the
  // first gradients' squares.
  double beta2 = 0.95;
  double epsilon = 1e-8;
};

class ShardedAdam {
 public:
  explicit ShardedAdam(std::size_t count, const AdamOptions& options = {});

  // One step on `parameters` against `gradient`; both hold `count` elements.
  void step(std::span<float> parameters, std::span<const float> gradient, double learning_rate);

 private:
  AdamOptions options_;
  std::uint64_t steps_ = 0;
  std::vector<float> mean_;
  std::vector<float> mean_square_;
};

// Linear warm-up over the first tenth, then a half cosine down to (almost) zero at the last step:
// as steps shrink, so does the error of a stale parameter.
double learning_rate_at(std::uint64_t step, std::uint64_t steps, double peak);
// The same for a run that makes up for dropped samples by more steps, `steps_expected` in all. The
// rate follows the share of samples that have been used, as if each of `steps` steps were whole.
double learning_rate_at(std::uint64_t step, std::uint64_t steps_expected, std::uint64_t steps,
                        double peak);

}  // namespace leeway::tools::train
