#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "leeway/options.h"

namespace leeway {
namespace {

TEST(Scalar, KeepsIntegersThatNoDoubleHolds) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(Scalar(kLargest).as<std::uint64_t>(), kLargest);
  EXPECT_EQ(Scalar(kLeast).as<std::int64_t>(), kLeast);
  EXPECT_EQ(Scalar(kLeast + 1).as<std::int64_t>(), kLeast + 1);
}

TEST(Scalar, FitsWhereTheTypeHasTheValue) {
  EXPECT_TRUE(Scalar(-128).fits<std::int8_t>());
  EXPECT_FALSE(Scalar(-129).fits<std::int8_t>());
  EXPECT_FALSE(Scalar(128).fits<std::int8_t>());
  EXPECT_FALSE(Scalar(-1).fits<std::uint64_t>());
  EXPECT_TRUE(Scalar(255.0).fits<std::uint8_t>());
  EXPECT_FALSE(Scalar(256.0).fits<std::uint8_t>());
  EXPECT_FALSE(Scalar(0.5).fits<std::int32_t>());
  EXPECT_TRUE(Scalar(-0x1p63).fits<std::int64_t>());
  EXPECT_FALSE(Scalar(0x1p63).fits<std::int64_t>());
  EXPECT_FALSE(Scalar(0x1p64).fits<std::uint64_t>());
  EXPECT_FALSE(Scalar(std::numeric_limits<double>::quiet_NaN()).fits<std::int32_t>());
  EXPECT_FALSE(Scalar(std::numeric_limits<double>::infinity()).fits<std::uint64_t>());
  EXPECT_TRUE(Scalar(~std::uint64_t{0}).fits<float>());
}

TEST(Scalar, ConvertsToFloatingTypes) {
  EXPECT_EQ(Scalar(0.1).as<float>(), 0.1f);
  EXPECT_EQ(Scalar(0.1).as<double>(), 0.1);
  EXPECT_EQ(Scalar(-3).as<float>(), -3.0f);
  // This number is 1 more than the middle between 2^63 and the next float. Rounding to double first
  // would lose the 1; the tie would then round down to 2^63.
  constexpr std::uint64_t kAboveTheTie = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 39) + 1;
  EXPECT_EQ(Scalar(kAboveTheTie).as<float>(), static_cast<float>(kAboveTheTie));
}

TEST(Scalar, EqualsTheSameNumberOfAnotherKind) {
  EXPECT_EQ(Scalar(1), Scalar(1.0));
  EXPECT_EQ(Scalar(-1.0), Scalar(std::int64_t{-1}));
  EXPECT_EQ(Scalar(1u), Scalar(1));
  EXPECT_NE(Scalar(1), Scalar(1.5));
  EXPECT_NE(Scalar(-1), Scalar(1));
  EXPECT_NE(Scalar((std::uint64_t{1} << 53) + 1), Scalar(0x1p53));
}

}  // namespace
}  // namespace leeway
