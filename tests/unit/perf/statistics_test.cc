#include "perf/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace leeway::tools::perf {
namespace {

using testing::ElementsAre;

TEST(Percentile, IsTheNearestRank) {
  std::vector<double> values(101);
  std::iota(values.rbegin(), values.rend(), 0.0);  // descending: the function sorts
  EXPECT_EQ(percentile(values, 0.0), 0);
  EXPECT_EQ(percentile(values, 0.5), 50);
  EXPECT_EQ(percentile(values, 0.99), 99);
  EXPECT_EQ(percentile(values, 1.0), 100);
}

TEST(Percentile, OfOneValueIsThatValue) {
  const std::vector<double> one{7};
  EXPECT_EQ(percentile(one, 0.5), 7);
  EXPECT_EQ(percentile(one, 0.99), 7);
}

TEST(Percentile, OfFewValuesTakesTheLargestAsTail) {
  const std::vector<double> values{3, 1, 2};
  EXPECT_EQ(percentile(values, 0.5), 2);
  EXPECT_EQ(percentile(values, 0.99), 3);
}

TEST(Mean, IsTheArithmeticMean) {
  const std::vector<double> values{1, 2, 6};
  EXPECT_EQ(mean(values), 3);
}

TEST(SlowestRank, TakesTheMaximumOfEachIteration) {
  const std::vector<double> two_ranks_of_three{1, 5, 3,  //
                                               2, 4, 3};
  EXPECT_THAT(slowest_rank(two_ranks_of_three, 3), ElementsAre(2, 5, 3));
}

}  // namespace
}  // namespace leeway::tools::perf
