// Logistic regression with SGD, each rank with its own points (logistic_problem.h). The problem is
// convex. Gradients differ between ranks as much as their data do.
//
// A rank's gradient is over all its points. All ranks start at 0. The optimum over all points is
// computed first. Ranks have equally many points, so this optimum is also that of the mean
// objective.
#pragma once

#include <vector>

#include "workload/logistic_problem.h"
#include "workload/rank_parameters.h"
#include "workload/workload.h"

namespace leeway::sim {

// Measures of this workload, from the parameters w_r of each rank r at the end of a run:
//   workload.distance_to_optimum  root of the mean over r of |w_r - optimum|^2
//   workload.objective_gap        mean over r of objective(w_r) - objective(optimum)
class LogisticWorkload final : public Workload {
 public:
  // Returns the errors of find_optimum().
  static Result<std::unique_ptr<Workload>> make(const LogisticProblem::Options& options,
                                                float learning_rate, std::uint64_t seed);

  std::size_t elements() const override { return parameters_.elements(); }
  std::span<float> parameters(std::uint32_t rank) override { return parameters_.of(rank); }
  void gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) override;
  void update(std::uint32_t rank, std::uint32_t round, std::size_t offset,
              std::span<const float> mean, std::span<float> parameters) override;
  double loss(std::uint32_t rank) override;  // objective over its optimum
  std::vector<Measure> measures() override;

 private:
  LogisticWorkload(LogisticProblem problem, std::vector<double> optimum, float learning_rate);

  std::span<const double> weights_of(std::uint32_t rank);

  LogisticProblem problem_;
  std::vector<double> optimum_;
  double least_;  // objective at the optimum
  float learning_rate_;
  RankParameters parameters_;
  std::vector<double> weights_;   // a rank's weights, in double precision
  std::vector<double> gradient_;  // a rank's gradient, in double precision
};

}  // namespace leeway::sim
