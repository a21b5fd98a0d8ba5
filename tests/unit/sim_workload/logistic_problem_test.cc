#include "workload/logistic_problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace leeway::sim {
namespace {

using Range = LogisticProblem::Range;

double norm_of(const std::vector<double>& v) {
  double square = 0;
  for (const double x : v) square += x * x;
  return std::sqrt(square);
}
std::vector<double> some_weights(std::size_t count) {
  std::vector<double> w(count);
  for (std::size_t j = 0; j < count; ++j) w[j] = 0.3 * std::sin(static_cast<double>(j) + 1);
  return w;
}
std::size_t first_class_points(const LogisticProblem& problem, std::uint32_t rank) {
  const Range range = problem.of_rank(rank);
  std::size_t count = 0;
  for (std::size_t i = 0; i < range.count; ++i) count += problem.label(range.first + i) == 1;
  return count;
}

TEST(LogisticProblem, LabelSkewDealsTheClassesOut) {
  for (const double skew : {0.0, 0.5, 1.0}) {
    const LogisticProblem problem(
        {.ranks = 3, .features = 2, .samples_per_rank = 200, .label_skew = skew}, 1);
    EXPECT_EQ(first_class_points(problem, 0), 100 * (1 + skew)) << skew;
    EXPECT_EQ(first_class_points(problem, 1), 100 * (1 - skew)) << skew;
    EXPECT_EQ(first_class_points(problem, 2), 100 * (1 + skew)) << skew;
  }
}

TEST(LogisticProblem, ClassesLieAroundOppositeMeans) {
  constexpr std::uint32_t kFeatures = 20;
  constexpr std::uint32_t kPoints = 20'000;
  const LogisticProblem problem({.ranks = 1, .features = kFeatures, .samples_per_rank = kPoints},
                                1);
  std::vector<double> difference(kFeatures);
  double square = 0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    for (std::size_t j = 0; j < kFeatures; ++j) {
      difference[j] += problem.label(i) * problem.point(i)[j] / kPoints;
      square += std::pow(problem.point(i)[j], 2) / kPoints;
    }
  }
  // The norm has noise of its own: one part along the mean and 19 across it.
  const double bias = (kFeatures - 1) / (2.0 * 1.5 * kPoints);
  EXPECT_NEAR(norm_of(difference), 1.5 + bias, 4 / std::sqrt(kPoints));
  // |x|^2 has the mean features + |mean|^2 and the variance 2 features + 4 |mean|^2.
  EXPECT_NEAR(square, kFeatures + 2.25, 4 * std::sqrt((2 * kFeatures + 9.0) / kPoints));
}

TEST(LogisticProblem, GradientIsTheObjectivesDerivative) {
  const LogisticProblem problem(
      {.ranks = 2, .features = 5, .samples_per_rank = 30, .label_skew = 0.4, .l2 = 0.1}, 1);
  for (const Range range : {problem.all(), problem.of_rank(1)}) {
    std::vector<double> w = some_weights(6);
    std::vector<double> gradient(6);
    problem.gradient(range, w, gradient);
    for (std::size_t j = 0; j < 6; ++j) {
      constexpr double kStep = 1e-5;
      w[j] += kStep;
      const double above = problem.objective(range, w);
      w[j] -= 2 * kStep;
      const double below = problem.objective(range, w);
      w[j] += kStep;
      EXPECT_NEAR(gradient[j], (above - below) / (2 * kStep), 1e-9) << j;
    }
  }
}

TEST(LogisticProblem, HessianIsTheGradientsDerivative) {
  const LogisticProblem problem({.ranks = 2, .features = 5, .samples_per_rank = 30, .l2 = 0.1}, 1);
  std::vector<double> w = some_weights(6);
  const auto curvatures = problem.curvatures(problem.all(), w);
  for (std::size_t j = 0; j < 6; ++j) {
    std::vector<double> unit(6);
    unit[j] = 1;
    std::vector<double> column(6), above(6), below(6);
    problem.hessian_times(problem.all(), curvatures, unit, column);
    constexpr double kStep = 1e-5;
    w[j] += kStep;
    problem.gradient(problem.all(), w, above);
    w[j] -= 2 * kStep;
    problem.gradient(problem.all(), w, below);
    w[j] += kStep;
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(column[i], (above[i] - below[i]) / (2 * kStep), 1e-9) << i << ' ' << j;
    }
  }
}

TEST(LogisticProblem, MeanOfRanksObjectivesIsThatOfAllPoints) {
  const LogisticProblem problem(
      {.ranks = 4, .features = 3, .samples_per_rank = 25, .label_skew = 1}, 1);
  const auto w = some_weights(4);
  double mean = 0;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    mean += problem.objective(problem.of_rank(rank), w) / 4;
  }
  EXPECT_NEAR(problem.objective(problem.all(), w), mean, 1e-14);
}

TEST(FindOptimum, LeavesNoGradient) {
  for (const double skew : {0.0, 1.0}) {
    for (const double l2 : {0.0, 0.01, 1.0}) {
      const LogisticProblem problem(
          {.ranks = 4, .features = 16, .samples_per_rank = 100, .label_skew = skew, .l2 = l2}, 1);
      const auto w = find_optimum(problem);
      ASSERT_TRUE(w.ok()) << w.status().text();
      std::vector<double> gradient(17);
      problem.gradient(problem.all(), *w, gradient);
      EXPECT_LE(norm_of(gradient), 1e-10) << skew << ' ' << l2;
    }
  }
}

TEST(FindOptimum, CopesWithNearlySeparablePoints) {
  const LogisticProblem problem({.ranks = 2, .features = 60, .samples_per_rank = 40, .l2 = 1e-7},
                                1);
  const auto w = find_optimum(problem);
  ASSERT_TRUE(w.ok()) << w.status().text();
  EXPECT_GT(norm_of(*w), 10);
}

TEST(FindOptimum, RefusesSeparablePointsWithoutL2) {
  const LogisticProblem problem({.ranks = 2, .features = 60, .samples_per_rank = 20, .l2 = 0}, 1);
  const auto w = find_optimum(problem);
  ASSERT_FALSE(w.ok());
  EXPECT_EQ(w.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leeway::sim
