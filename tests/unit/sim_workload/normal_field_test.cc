#include "workload/normal_field.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace leeway::sim {
namespace {

constexpr std::size_t kCount = 4'000'000;

std::vector<float> field(std::uint64_t seed, std::uint32_t rank, std::uint32_t round,
                         std::size_t count) {
  std::vector<float> values(count);
  NormalField(seed, rank, round).add_to(values, 1);
  return values;
}

TEST(NormalField, FollowsTheNormalLaw) {
  std::vector<float> values = field(1, 2, 3, kCount);
  std::sort(values.begin(), values.end());
  double farthest = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double p = std::erfc(-values[i] / std::sqrt(2.0)) / 2;
    const double below = static_cast<double>(i) / kCount;
    farthest = std::max({farthest, p - below, below + 1.0 / kCount - p});
  }
  // The Kolmogorov-Smirnov statistic is above 2.2 with probability 1.2e-4, which is 3.8 sigma.
  EXPECT_LT(farthest * std::sqrt(kCount), 2.2);
}

TEST(NormalField, HasTheMomentsOfTheNormalLaw) {
  double sum = 0, square = 0, third = 0, fourth = 0;
  for (const float value : field(4, 0, 0, kCount)) {
    const double z = value;
    sum += z;
    square += z * z;
    third += z * z * z;
    fourth += z * z * z * z;
  }
  const double deviation = std::sqrt(kCount);
  EXPECT_NEAR(sum / kCount, 0, 4 / deviation);
  EXPECT_NEAR(square / kCount, 1, 4 * std::sqrt(2.0) / deviation);
  EXPECT_NEAR(third / kCount, 0, 4 * std::sqrt(15.0) / deviation);
  EXPECT_NEAR(fourth / kCount, 3, 4 * std::sqrt(96.0) / deviation);
}

// At these values the ziggurat ends and its tail begins.
TEST(NormalField, HasTheTailsOfTheNormalLaw) {
  constexpr std::size_t kMany = 8 * kCount;
  const std::vector<float> values = field(5, 1, 0, kMany);
  for (const double bound : {3.0, 3.4426, 3.8, 4.2}) {
    const double p = std::erfc(bound / std::sqrt(2.0)) / 2;
    const double expected = p * kMany;
    const auto above = std::ranges::count_if(values, [&](float z) { return z > bound; });
    const auto below = std::ranges::count_if(values, [&](float z) { return z < -bound; });
    EXPECT_NEAR(static_cast<double>(above), expected, 4 * std::sqrt(expected)) << bound;
    EXPECT_NEAR(static_cast<double>(below), expected, 4 * std::sqrt(expected)) << bound;
  }
}

TEST(NormalField, IsAFunctionOfTheAddress) {
  const std::vector<float> all = field(9, 3, 7, 4099);
  const NormalField same(9, 3, 7);
  for (std::size_t i = all.size(); i-- > 0;) ASSERT_EQ(same.at(i), all[i]) << i;
  EXPECT_NE(field(8, 3, 7, 16), field(9, 3, 7, 16));
  EXPECT_NE(field(9, 2, 7, 16), field(9, 3, 7, 16));
  EXPECT_NE(field(9, 3, 6, 16), field(9, 3, 7, 16));
}

TEST(NormalField, IsAddedTimesTheDeviation) {
  std::vector<float> values(101, 5);
  NormalField(1, 1, 1).add_to(values, 0.5F);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], 5 + 0.5F * NormalField(1, 1, 1).at(i));
  }
}

TEST(NormalField, NeighboursAreNotCorrelated) {
  const std::vector<float> here = field(6, 0, 0, kCount);
  const std::vector<float> there = field(6, 1, 0, kCount);
  double beside = 0, across = 0;
  for (std::size_t i = 0; i + 1 < kCount; ++i) {
    beside += static_cast<double>(here[i]) * here[i + 1];
    across += static_cast<double>(here[i]) * there[i];
  }
  EXPECT_NEAR(beside / kCount, 0, 4 / std::sqrt(kCount));
  EXPECT_NEAR(across / kCount, 0, 4 / std::sqrt(kCount));
}

// If these values change, every recorded run becomes invalid.
TEST(NormalField, HoldsTheGoldenValues) {
  double sum = 0;
  for (const float z : field(1, 2, 3, 100'000)) sum += z;
  EXPECT_EQ(NormalField(1, 2, 3).at(0), -0x1.45143ap+0F);
  EXPECT_EQ(NormalField(1, 2, 3).at(std::size_t{1} << 35), -0x1.e91ae4p-4F);
  EXPECT_EQ(sum, 0x1.90b6ca129728p+7);
}

}  // namespace
}  // namespace leeway::sim
