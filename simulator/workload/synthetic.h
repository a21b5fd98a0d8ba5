// Gradients without a model: normal numbers with known means, so the error of any estimate of their
// average is known, too.
#pragma once

#include <vector>

#include "workload/workload.h"

namespace leeway::sim {

// Element j of rank r in a round is mean + rank_deviation z(r) + deviation z(r, round, j) with
// independent standard normal z. Measures, over the elements of all results:
//   workload.expected           mean of a result without loss: the mean of the ranks' means
//   workload.bias               mean of result - expected
//   workload.error_mean_square  mean of (result - expected)^2; deviation^2 / ranks without loss
class SyntheticWorkload final : public Workload {
 public:
  struct Options {
    std::uint32_t ranks = 1;
    std::size_t elements = 0;
    float mean = 1;
    float deviation = 1;
    float rank_deviation = 0;
  };

  SyntheticWorkload(const Options& options, std::uint64_t seed);

  std::size_t elements() const override { return options_.elements; }
  std::span<float> parameters(std::uint32_t) override { return {}; }
  void gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) override;
  void gradient_sum(std::uint32_t rank, std::uint32_t round, MicroBatches micro_batches,
                    std::span<float> out) override;
  void update(std::uint32_t rank, std::uint32_t round, std::size_t offset,
              std::span<const float> mean, std::span<float> parameters) override;
  double loss(std::uint32_t rank) override;
  std::vector<Measure> measures() override;

  float mean_of(std::uint32_t rank) const { return rank_means_[rank]; }
  double expected() const { return expected_; }

 private:
  Options options_;
  std::uint64_t seed_;
  std::vector<float> rank_means_;
  double expected_ = 0;
  double errors_ = 0;
  double squares_ = 0;
  std::uint64_t results_ = 0;  // elements
};

}  // namespace leeway::sim
