#include "report/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace leeway::sim {
namespace {

TEST(SpreadOf, HandComputed) {
  const std::vector<double> values = {2, 4, 4, 6};
  const Spread spread = spread_of(values);
  EXPECT_EQ(spread.count, 4u);
  EXPECT_DOUBLE_EQ(spread.mean, 4);
  EXPECT_DOUBLE_EQ(spread.deviation, std::sqrt(8.0 / 3));
  EXPECT_DOUBLE_EQ(spread.error, std::sqrt(8.0 / 3) / 2);
  EXPECT_EQ(spread.min, 2);
  EXPECT_EQ(spread.max, 6);
}

TEST(SpreadOf, OneValueHasNoDeviation) {
  const Spread spread = spread_of(std::vector<double>{3});
  EXPECT_EQ(spread.mean, 3);
  EXPECT_TRUE(std::isnan(spread.deviation));
  EXPECT_TRUE(std::isnan(spread.error));
}

TEST(SpreadOf, WhatIsNotFiniteDoesNotCount) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Spread spread = spread_of(std::vector<double>{kUnknown, 1, infinity, 3});
  EXPECT_EQ(spread.count, 2u);
  EXPECT_EQ(spread.mean, 2);
  EXPECT_EQ(spread.max, 3);
  EXPECT_EQ(spread_of(std::vector<double>{kUnknown}).count, 0u);
  EXPECT_TRUE(std::isnan(spread_of({}).mean));
}

TEST(PercentilesOf, SortsAndLeavesOutWhatIsNotFinite) {
  const Percentiles values = percentiles_of({5, kUnknown, 1, 4, 2, 3});
  EXPECT_EQ(values.count, 5u);
  EXPECT_EQ(values.mean, 3);
  EXPECT_EQ(values.min, 1);
  EXPECT_EQ(values.p50, 3);
  EXPECT_EQ(values.p90, 5);
  EXPECT_EQ(values.max, 5);
}

}  // namespace
}  // namespace leeway::sim
