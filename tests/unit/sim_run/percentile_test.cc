#include "run/percentile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace leeway::sim {
namespace {

TEST(Percentile, NearestRank) {
  std::vector<double> values(200);
  std::iota(values.begin(), values.end(), 1);
  EXPECT_EQ(percentile(values, 500), 100);
  EXPECT_EQ(percentile(values, 900), 180);
  EXPECT_EQ(percentile(values, 990), 198);
  EXPECT_EQ(percentile(values, 999), 200);  // 199 values do not reach 99.9 % of 200, which is 199.8
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(values, 1000), 200);
  EXPECT_EQ(percentile(std::vector<double>{7}, 500), 7);
  EXPECT_TRUE(std::isnan(percentile({}, 500)));
}

}  // namespace
}  // namespace leeway::sim
