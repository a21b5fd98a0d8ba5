// A quadratic objective for each rank, with the same shape around different centres. On this small
// problem a biased estimator converges to a wrong point, and that point is known.
//
//   f_i(x) = sum_j h_j (x_j - c_ij)^2 / 2
//
// h_j grows from 1 / condition to 1 by equal factors. c_ij = c_j + center_deviation z_ij with
// standard normal c_j and z_ij. All ranks start at 0. The optimum of the mean of all f_i is the
// mean of the centres. At x this mean is sum_j h_j (x_j - optimum_j)^2 / 2 above its minimum.
#pragma once

#include <vector>

#include "workload/rank_parameters.h"
#include "workload/workload.h"

namespace leeway::sim {

// Measures of this workload, from the parameters x_r of each rank r at the end of a run:
//   workload.distance_to_optimum  root of the mean over r of |x_r - optimum|^2
//   workload.objective_gap        mean over r of objective(x_r) - objective(optimum)
class QuadraticWorkload final : public Workload {
 public:
  struct Options {
    std::uint32_t ranks = 1;
    std::size_t elements = 0;
    double condition = 10;
    float noise = 0;  // deviation of a gradient's element
    float center_deviation = 1;
    float learning_rate = 0.05F;
  };

  QuadraticWorkload(const Options& options, std::uint64_t seed);

  std::size_t elements() const override { return parameters_.elements(); }
  std::span<float> parameters(std::uint32_t rank) override { return parameters_.of(rank); }
  void gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) override;
  void gradient_sum(std::uint32_t rank, std::uint32_t round, MicroBatches micro_batches,
                    std::span<float> out) override;
  void update(std::uint32_t rank, std::uint32_t round, std::size_t offset,
              std::span<const float> mean, std::span<float> parameters) override;
  double loss(std::uint32_t rank) override;  // objective over its optimum
  std::vector<Measure> measures() override;

  // fixed_point() returns where SGD without noise ends if the estimator gives rank i the weight
  // weights[i]. gap_of() returns how far the objective at x is above its minimum.
  std::vector<float> fixed_point(std::span<const double> weights) const;
  double gap_of(std::span<const float> x) const;

 private:
  Options options_;
  std::uint64_t seed_;
  RankParameters parameters_;
  std::vector<float> centers_;  // rank after rank
  std::vector<float> curvatures_;
  std::vector<float> optimum_;
};

}  // namespace leeway::sim
