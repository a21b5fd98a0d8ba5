#include "workload/lane_sum.h"

#include <gtest/gtest.h>

namespace leeway::sim {
namespace {

TEST(LaneSum, AddsEveryTermOnce) {
  for (std::size_t count = 0; count < 40; ++count) {
    const double sum = lane_sum(count, [](std::size_t i) { return static_cast<double>(i + 1); });
    EXPECT_EQ(sum, static_cast<double>(count * (count + 1) / 2)) << count;
  }
}

// A 1 that is added to 1e16 is lost. Lane 0 sums terms 0 and 8 before it meets other lanes. So a 1
// in term 8 is lost beside 1e16 in term 0. A 1 in term 1 is kept if terms 0 and 8 cancel.
TEST(LaneSum, KeepsItsOrder) {
  const auto term = [](std::size_t i) { return i == 0 ? 1e16 : i == 8 ? 1.0 : i == 9 ? -1e16 : 0; };
  EXPECT_EQ(lane_sum(10, term), 0);
  const auto ones = [](std::size_t i) { return i == 0 ? 1e16 : i == 8 ? -1e16 : i == 1 ? 1.0 : 0; };
  EXPECT_EQ(lane_sum(10, ones), 1);
}

}  // namespace
}  // namespace leeway::sim
