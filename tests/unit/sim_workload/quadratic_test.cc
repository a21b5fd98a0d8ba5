#include "workload/quadratic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/random_stream.h"

namespace leeway::sim {
namespace {

std::vector<float> gradient_of(QuadraticWorkload& workload, std::uint32_t rank,
                               std::uint32_t round) {
  std::vector<float> out(workload.elements());
  workload.gradient(rank, round, out);
  return out;
}

// Runs rounds of SGD on all ranks. Rank i has weight weights[i] in every average.
void train(QuadraticWorkload& workload, std::span<const double> weights, std::uint32_t rounds) {
  const auto ranks = static_cast<std::uint32_t>(weights.size());
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::vector<float> mean(workload.elements());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const auto gradient = gradient_of(workload, rank, round);
      for (std::size_t j = 0; j < mean.size(); ++j) {
        mean[j] += static_cast<float>(weights[rank]) * gradient[j];
      }
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      workload.update(rank, round, 0, mean, workload.parameters(rank));
    }
  }
}

double value_of(QuadraticWorkload& workload, const std::string& name) {
  for (const Measure& measure : workload.measures()) {
    if (measure.name == name) return measure.value;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(Quadratic, AllRanksStartAtZero) {
  QuadraticWorkload workload({.ranks = 3, .elements = 10}, 1);
  for (const float x : workload.parameters(2)) EXPECT_EQ(x, 0);
  EXPECT_GT(workload.loss(2), 0);
}

TEST(Quadratic, GradientIsThatOfTheBowl) {
  // The two elements have h = 1/100 and 1. f is quadratic, so differences of gradients are exactly
  // h.
  QuadraticWorkload workload({.ranks = 2, .elements = 2, .condition = 100}, 1);
  const auto at_zero = gradient_of(workload, 1, 0);
  workload.parameters(1)[0] = 2;
  workload.parameters(1)[1] = 2;
  const auto at_two = gradient_of(workload, 1, 0);
  EXPECT_NEAR(at_two[0] - at_zero[0], 0.02, 1e-6);
  EXPECT_NEAR(at_two[1] - at_zero[1], 2, 1e-6);
  EXPECT_NE(gradient_of(workload, 0, 0), at_zero);  // another centre
}

TEST(Quadratic, CurvaturesGrowByEqualFactors) {
  QuadraticWorkload workload({.ranks = 1, .elements = 4, .condition = 1000}, 1);
  const auto before = gradient_of(workload, 0, 0);
  for (float& x : workload.parameters(0)) x = 1;
  const auto after = gradient_of(workload, 0, 0);
  for (std::size_t j = 0; j < 4; ++j) {
    const double curvature = after[j] - before[j];
    EXPECT_NEAR(curvature, std::pow(10.0, static_cast<double>(j) - 3), 1e-6);
  }
}

TEST(Quadratic, SgdWithoutLossFindsTheOptimum) {
  QuadraticWorkload workload({.ranks = 4, .elements = 50, .condition = 5, .learning_rate = 0.5F},
                             1);
  train(workload, std::vector<double>(4, 0.25), 400);
  EXPECT_LT(value_of(workload, "workload.distance_to_optimum"), 1e-5);
  EXPECT_LT(value_of(workload, "workload.objective_gap"), 1e-11);
}

TEST(Quadratic, TiltedWeightsEndAtTheirFixedPoint) {
  QuadraticWorkload workload({.ranks = 4, .elements = 50, .condition = 5, .learning_rate = 0.5F},
                             1);
  const std::vector<double> weights{0.31875, 0.27375, 0.27375, 0.13375};
  const auto point = workload.fixed_point(weights);
  train(workload, weights, 400);
  for (std::size_t j = 0; j < 50; ++j) ASSERT_NEAR(workload.parameters(2)[j], point[j], 1e-5);
  EXPECT_NEAR(workload.loss(2), workload.gap_of(point), 1e-5);
}

// The mean gap over the centres is (center_deviation^2 / 2) sum_j h_j sum_i (w_i - 1/N)^2.
TEST(Quadratic, TheFixedPointsGapIsTheClosedForm) {
  constexpr std::size_t kElements = 100'000;
  QuadraticWorkload workload(
      {.ranks = 4, .elements = kElements, .condition = 1, .center_deviation = 2}, 1);
  const std::vector<double> weights{0.31875, 0.27375, 0.27375, 0.13375};
  double squares = 0;
  for (const double weight : weights) squares += (weight - 0.25) * (weight - 0.25);
  const double expected = 2.0 * kElements * squares;
  EXPECT_NEAR(workload.gap_of(workload.fixed_point(weights)), expected,
              4 * expected * std::sqrt(2.0 / kElements));
}

// The estimator is ratio, and 40 % of the elements are lost independently. README.md tells where
// SGD ends.
TEST(Quadratic, TheRatioRuleEndsWhereItsWeightsSay) {
  constexpr std::uint32_t kRanks = 4;
  constexpr std::size_t kElements = 8000;
  constexpr std::size_t kShard = kElements / kRanks;
  constexpr double kLoss = 0.4;
  constexpr double kRate = 0.1;
  QuadraticWorkload workload({.ranks = kRanks,
                              .elements = kElements,
                              .condition = 1,
                              .noise = 0.5F,
                              .center_deviation = 1,
                              .learning_rate = kRate},
                             1);
  RandomStream losses(1, 0, Purpose::loss);
  for (std::uint32_t round = 0; round < 150; ++round) {
    std::vector<float> sum(kElements);
    std::vector<float> count(kElements);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const auto gradient = gradient_of(workload, rank, round);
      for (std::size_t j = 0; j < kElements; ++j) {
        if (j / kShard != rank && losses.unit53() < kLoss) continue;
        sum[j] += gradient[j];
        count[j] += 1;
      }
    }
    for (std::size_t j = 0; j < kElements; ++j) sum[j] /= count[j];
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      workload.update(rank, round, 0, sum, workload.parameters(rank));
    }
  }
  const double squares = (1 - std::pow(kLoss, kRanks)) / (kRanks * (1 - kLoss));  // E sum W^2
  const double tilt = std::pow(squares - 1.0 / kRanks, 2) * kRanks / (kRanks - 1);
  const double variance = 0.25 * squares + (squares - tilt - 1.0 / kRanks);
  const double expected = kElements * (tilt / 2 + kRate / (2 * (2 - kRate)) * variance);
  EXPECT_NEAR(value_of(workload, "workload.objective_gap"), expected,
              4 * expected * std::sqrt(2.0 / kElements));
}

TEST(Quadratic, CentersSpreadAroundACommonOne) {
  constexpr std::size_t kElements = 100'000;
  QuadraticWorkload workload(
      {.ranks = 2, .elements = kElements, .condition = 1, .center_deviation = 3}, 1);
  const auto first = workload.fixed_point(std::vector<double>{1, 0});
  const auto second = workload.fixed_point(std::vector<double>{0, 1});
  double difference = 0;
  double product = 0;
  for (std::size_t j = 0; j < kElements; ++j) {
    difference += std::pow(first[j] - second[j], 2) / kElements;
    product += static_cast<double>(first[j]) * second[j] / kElements;
  }
  EXPECT_NEAR(difference, 18, 4 * 18 * std::sqrt(2.0 / kElements));
  // The common part has variance 1. A product of two parts of variance 10 deviates by about 10.
  EXPECT_NEAR(product, 1, 4 * 10.1 / std::sqrt(kElements));
}

TEST(Quadratic, NoiseHasItsDeviationAndDiffersEachRound) {
  constexpr std::size_t kElements = 100'000;
  QuadraticWorkload noisy({.ranks = 1, .elements = kElements, .noise = 0.5F}, 1);
  QuadraticWorkload quiet({.ranks = 1, .elements = kElements}, 1);
  const auto first = gradient_of(noisy, 0, 0);
  const auto second = gradient_of(noisy, 0, 1);
  const auto exact = gradient_of(quiet, 0, 0);
  double square = 0;
  double product = 0;
  for (std::size_t j = 0; j < kElements; ++j) {
    square += std::pow(first[j] - exact[j], 2) / kElements;
    product += (first[j] - exact[j]) * (second[j] - exact[j]) / kElements;
  }
  EXPECT_NEAR(square, 0.25, 4 * 0.25 * std::sqrt(2.0 / kElements));
  EXPECT_NEAR(product, 0, 4 * 0.25 / std::sqrt(kElements));
}

TEST(Quadratic, UpdateStepsThePartThatItIsGiven) {
  QuadraticWorkload workload({.ranks = 1, .elements = 4, .learning_rate = 0.25F}, 1);
  workload.update(0, 0, 1, std::vector<float>{4, -8}, workload.parameters(0).subspan(1, 2));
  EXPECT_EQ(workload.parameters(0)[0], 0);
  EXPECT_EQ(workload.parameters(0)[1], -1);
  EXPECT_EQ(workload.parameters(0)[2], 2);
  EXPECT_EQ(workload.parameters(0)[3], 0);
}

TEST(Quadratic, MeasuresAreMeansOverReplicasThatDrift) {
  QuadraticWorkload workload({.ranks = 2, .elements = 1}, 1);
  const float optimum = workload.fixed_point(std::vector<double>{0.5, 0.5})[0];
  workload.parameters(0)[0] = optimum + 1;
  workload.parameters(1)[0] = optimum - 3;
  EXPECT_NEAR(value_of(workload, "workload.distance_to_optimum"), std::sqrt(5.0), 1e-5);
  EXPECT_NEAR(value_of(workload, "workload.objective_gap"), 2.5, 1e-5);  // h of one element is 1
}

}  // namespace
}  // namespace leeway::sim
