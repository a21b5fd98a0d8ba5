#include "workload/logistic.h"

#include <cmath>
#include <utility>

#include "base/contracts.h"
#include "workload/lane_sum.h"

namespace leeway::sim {

Result<std::unique_ptr<Workload>> LogisticWorkload::make(const LogisticProblem::Options& options,
                                                         float learning_rate, std::uint64_t seed) {
  LogisticProblem problem(options, seed);
  auto optimum = find_optimum(problem);
  if (!optimum.ok()) return optimum.status();
  return std::unique_ptr<Workload>(
      new LogisticWorkload(std::move(problem), std::move(*optimum), learning_rate));
}

LogisticWorkload::LogisticWorkload(LogisticProblem problem, std::vector<double> optimum,
                                   float learning_rate)
    : problem_(std::move(problem)),
      optimum_(std::move(optimum)),
      least_(problem_.objective(problem_.all(), optimum_)),
      learning_rate_(learning_rate),
      parameters_(problem_.options().ranks, problem_.dimensions()),
      weights_(problem_.dimensions()),
      gradient_(problem_.dimensions()) {}

std::span<const double> LogisticWorkload::weights_of(std::uint32_t rank) {
  const auto parameters = parameters_.of(rank);
  weights_.assign(parameters.begin(), parameters.end());
  return weights_;
}

void LogisticWorkload::gradient(std::uint32_t rank, std::uint32_t, std::span<float> out) {
  LEEWAY_ASSERT(out.size() == elements());
  problem_.gradient(problem_.of_rank(rank), weights_of(rank), gradient_);
  for (std::size_t j = 0; j < out.size(); ++j) out[j] = static_cast<float>(gradient_[j]);
}

void LogisticWorkload::update(std::uint32_t, std::uint32_t, std::size_t,
                              std::span<const float> mean, std::span<float> parameters) {
  sgd_step(parameters, mean, learning_rate_);
}

double LogisticWorkload::loss(std::uint32_t rank) {
  return problem_.objective(problem_.all(), weights_of(rank)) - least_;
}

std::vector<Measure> LogisticWorkload::measures() {
  const std::uint32_t ranks = problem_.options().ranks;
  double squares = 0;
  double gaps = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto w = weights_of(rank);
    squares += lane_sum(w.size(),
                        [&](std::size_t j) { return (w[j] - optimum_[j]) * (w[j] - optimum_[j]); });
    gaps += loss(rank);
  }
  return {{"workload.distance_to_optimum", std::sqrt(squares / ranks)},
          {"workload.objective_gap", gaps / ranks}};
}

}  // namespace leeway::sim
