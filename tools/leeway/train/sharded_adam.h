// Adam over a contiguous part of a flat parameter vector, and the learning rate over a run.
//
// Element-wise and stateless across elements: the owner of a shard that steps its part only
// (ZeRO-1) computes, bit for bit, what an Adam over the whole vector would compute there. The
// moments exist for the part only.
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
// as steps shrink, so does what a stale parameter is behind.
double learning_rate_at(std::uint64_t step, std::uint64_t steps, double peak);
// The same of a run that makes up for dropped samples by more steps, `steps_expected` in all: by
// the part of the samples that will have been used, as if every step of `steps` were whole.
double learning_rate_at(std::uint64_t step, std::uint64_t steps_expected, std::uint64_t steps,
                        double peak);

}  // namespace leeway::tools::train
