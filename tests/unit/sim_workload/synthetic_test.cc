#include "workload/synthetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace leeway::sim {
namespace {

constexpr std::size_t kElements = 40'000;

std::vector<float> gradient_of(SyntheticWorkload& workload, std::uint32_t rank,
                               std::uint32_t round) {
  std::vector<float> out(workload.elements(), 99);
  workload.gradient(rank, round, out);
  return out;
}
double mean_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}
double value_of(SyntheticWorkload& workload, const std::string& name) {
  for (const Measure& measure : workload.measures()) {
    if (measure.name == name) return measure.value;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(Synthetic, GradientsHaveTheRanksMeanAndTheDeviation) {
  SyntheticWorkload workload(
      {.ranks = 3, .elements = kElements, .mean = 2, .deviation = 0.5F, .rank_deviation = 1}, 1);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto gradient = gradient_of(workload, rank, 5);
    const double mean = mean_of(gradient);
    EXPECT_NEAR(mean, workload.mean_of(rank), 4 * 0.5 / std::sqrt(kElements));
    double square = 0;
    for (const float g : gradient) square += (g - mean) * (g - mean);
    EXPECT_NEAR(square / kElements, 0.25, 4 * 0.25 * std::sqrt(2.0 / kElements));
  }
  EXPECT_NE(workload.mean_of(0), workload.mean_of(1));
}

TEST(Synthetic, GradientsAreAFunctionOfRankAndRound) {
  SyntheticWorkload workload({.ranks = 2, .elements = 100}, 1);
  SyntheticWorkload twin({.ranks = 2, .elements = 100}, 1);
  const auto later = gradient_of(workload, 1, 8);
  EXPECT_EQ(gradient_of(twin, 1, 8), later);
  EXPECT_NE(gradient_of(twin, 0, 8), later);
  EXPECT_NE(gradient_of(twin, 1, 9), later);
}

TEST(Synthetic, RankMeansSpreadAroundTheMean) {
  constexpr std::uint32_t kRanks = 2000;
  SyntheticWorkload workload({.ranks = kRanks, .elements = 1, .mean = 2, .rank_deviation = 3}, 1);
  double sum = 0;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) sum += workload.mean_of(rank);
  EXPECT_NEAR(workload.expected(), sum / kRanks, 1e-9);
  EXPECT_NEAR(workload.expected(), 2, 4 * 3 / std::sqrt(kRanks));
}

TEST(Synthetic, MeasuresBiasAndErrorOfTheResults) {
  SyntheticWorkload workload({.ranks = 2, .elements = 4, .mean = 1}, 1);
  workload.update(0, 0, 0, std::vector<float>{1, 1, 1, 3}, {});
  workload.update(1, 0, 2, std::vector<float>{1, 0}, {});
  EXPECT_EQ(value_of(workload, "workload.expected"), 1);
  EXPECT_NEAR(value_of(workload, "workload.bias"), (2.0 - 1.0) / 6, 1e-12);
  EXPECT_NEAR(value_of(workload, "workload.error_mean_square"), 5.0 / 6, 1e-12);
}

TEST(Synthetic, AveragesWithoutLossHaveTheStatedError) {
  constexpr std::uint32_t kRanks = 4;
  SyntheticWorkload workload({.ranks = kRanks, .elements = kElements, .rank_deviation = 2}, 3);
  std::vector<float> average(kElements);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const auto gradient = gradient_of(workload, rank, 0);
    for (std::size_t i = 0; i < kElements; ++i) average[i] += gradient[i] / kRanks;
  }
  workload.update(0, 0, 0, average, {});
  EXPECT_NEAR(value_of(workload, "workload.bias"), 0, 4 * 0.5 / std::sqrt(kElements));
  EXPECT_NEAR(value_of(workload, "workload.error_mean_square"), 0.25,
              4 * 0.25 * std::sqrt(2.0 / kElements));
}

TEST(Synthetic, HasNoModel) {
  SyntheticWorkload workload({.ranks = 2, .elements = 4}, 1);
  EXPECT_TRUE(workload.parameters(1).empty());
  EXPECT_TRUE(std::isnan(workload.loss(0)));
  EXPECT_TRUE(workload.measures().empty());  // before any result
}

}  // namespace
}  // namespace leeway::sim
