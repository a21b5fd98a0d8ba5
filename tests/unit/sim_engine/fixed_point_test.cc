#include "engine/fixed_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"

namespace leeway::sim {
namespace {

constexpr double kF32 = 0x1p32;

TEST(MultiplyF63, RoundsToNearest) {
  EXPECT_EQ(multiply_f63(kOneF63, kOneF63), kOneF63);
  EXPECT_EQ(multiply_f63(kOneF63, 12345), 12345u);
  EXPECT_EQ(multiply_f63(kOneF63 / 2, 3), 2u);  // 1.5
  EXPECT_EQ(multiply_f63(kOneF63 / 4, 5), 1u);  // 1.25
  EXPECT_EQ(multiply_f63(0, kOneF63), 0u);
}

TEST(FloorSqrt, IsTheGreatestRootNotAboveTheNumber) {
  for (std::uint64_t root = 1; root < 70'000; ++root) {
    ASSERT_EQ(floor_sqrt(root * root), root);
    ASSERT_EQ(floor_sqrt(root * root - 1), root - 1);
  }
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const std::uint64_t root = keyed_hash(1, i, 0, 0, 0) >> (32 + i % 32);
    if (root == 0) continue;
    ASSERT_EQ(floor_sqrt(root * root), root);
    ASSERT_EQ(floor_sqrt(root * root - 1), root - 1);
    ASSERT_EQ(floor_sqrt(root * root + 2 * root), root);
  }
  EXPECT_EQ(floor_sqrt(UINT64_MAX), UINT32_MAX);
}

TEST(NegativeLog2, IsExactForPowersOfTwo) {
  for (std::uint64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(negative_log2(std::uint64_t{1} << i), (64 - i) * kOneF32) << i;
  }
}

TEST(NegativeLog2, IsNeverBelowTheTruthAndAtMostTheStatedErrorAbove) {
  double worst = 0;
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    const std::uint64_t n = keyed_hash(2, i, 0, 0, 0) >> (i % 64) | 1;
    const double error =
        static_cast<double>(negative_log2(n)) / kF32 - (64 - std::log2(static_cast<double>(n)));
    ASSERT_GT(error, -1e-9) << n;
    worst = std::max(worst, error);
  }
  EXPECT_LT(worst, 1.8e-7);
  EXPECT_GT(worst, 1.5e-7);  // otherwise the header could state a smaller error
}

TEST(ScaleByExp2, IsExactForWholePowers) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 62;
  const auto whole = [](int n) { return std::int64_t{n} * (std::int64_t{1} << 32); };
  EXPECT_EQ(scale_by_exp2(1000, 0, kLimit), 1000u);
  EXPECT_EQ(scale_by_exp2(1000, whole(1), kLimit), 2000u);
  EXPECT_EQ(scale_by_exp2(1000, whole(-1), kLimit), 500u);
  EXPECT_EQ(scale_by_exp2(1000, whole(-10), kLimit), 0u);
  EXPECT_EQ(scale_by_exp2(1, whole(33), kLimit), std::uint64_t{1} << 33);
  EXPECT_EQ(scale_by_exp2(1, whole(61), kLimit), std::uint64_t{1} << 61);
}

TEST(ScaleByExp2, StopsAtTheLimitAndAtZero) {
  const auto whole = [](int n) { return std::int64_t{n} * (std::int64_t{1} << 32); };
  EXPECT_EQ(scale_by_exp2(1000, whole(1), 1999), 1999u);
  EXPECT_EQ(scale_by_exp2(UINT64_MAX, whole(32), 77), 77u);
  for (const int n : {64, 94, 95, 96, 1000, 2'000'000'000}) {
    EXPECT_EQ(scale_by_exp2(1, whole(n), 77), 77u) << n;
    EXPECT_EQ(scale_by_exp2(0, whole(n), 77), 0u) << n;
  }
  for (const int n : {-95, -96, -1000, -2'000'000'000}) {
    EXPECT_EQ(scale_by_exp2(1000, whole(n), 77), 0u) << n;
  }
}

TEST(ScaleByExp2, HasTheStatedRelativeError) {
  constexpr std::uint64_t kScale = std::uint64_t{1} << 40;
  double least = 0;
  double most = 0;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const auto x = static_cast<std::int64_t>(keyed_hash(3, i, 0, 0, 0)) >> 28;  // -8 .. 8
    const double exact = static_cast<double>(kScale) * std::exp2(static_cast<double>(x) / kF32);
    const double error = static_cast<double>(scale_by_exp2(kScale, x, UINT64_MAX)) / exact - 1;
    least = std::min(least, error);
    most = std::max(most, error);
  }
  EXPECT_GT(least, -1e-9);
  EXPECT_LT(most, 6e-8);
}

}  // namespace
}  // namespace leeway::sim
