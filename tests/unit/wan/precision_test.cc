#include "precision.h"

#include <gtest/gtest.h>

namespace leeway::lab {
namespace {

TEST(TimeHistogram, TellsQuantilesWithinAQuarter) {
  TimeHistogram times;
  for (std::int64_t us = 1; us <= 1000; ++us) times.add(us * 1000);
  EXPECT_EQ(times.total(), 1000u);
  EXPECT_EQ(times.max_ns(), 1'000'000);
  for (const double share : {0.01, 0.5, 0.9, 0.99}) {
    const auto exact_ns = static_cast<double>(share * 1e6);
    EXPECT_GE(static_cast<double>(times.quantile_ns(share)), exact_ns);
    EXPECT_LE(static_cast<double>(times.quantile_ns(share)), exact_ns * 1.26);
  }
  EXPECT_EQ(times.quantile_ns(1), 1'000'000);
}

TEST(TimeHistogram, TakesTheSmallestAndTheLargestTimes) {
  TimeHistogram times;
  EXPECT_EQ(times.quantile_ns(0.5), 0);
  times.add(-5);
  times.add(0);
  times.add(INT64_MAX);
  EXPECT_EQ(times.total(), 3u);
  EXPECT_EQ(times.max_ns(), INT64_MAX);
  EXPECT_EQ(times.count_from(1), 1u);
}

TEST(Precision, KeepsUpUntilOnePacketInAHundredIsLate) {
  Precision precision;
  EXPECT_TRUE(precision.kept_up());
  for (int i = 0; i < 990; ++i) precision.late.add(20'000);
  for (int i = 0; i < 10; ++i) precision.late.add(2 * kLateNs);
  EXPECT_DOUBLE_EQ(precision.late_share(), 0.01);
  EXPECT_TRUE(precision.kept_up());
  precision.late.add(2 * kLateNs);
  EXPECT_FALSE(precision.kept_up());
}

// Half of the packets wait before they are taken in. All that are taken in are delivered on time,
// but that is not enough.
TEST(Precision, DoesNotKeepUpWhenPacketsComeInLate) {
  Precision precision;
  for (int i = 0; i < 100; ++i) precision.late.add(20'000);
  for (int i = 0; i < 50; ++i) precision.intake.add(20'000);
  for (int i = 0; i < 50; ++i) precision.intake.add(100 * kLateNs);
  EXPECT_DOUBLE_EQ(precision.late_share(), 0.5);
  EXPECT_FALSE(precision.kept_up());
}

TEST(Precision, DoesNotKeepUpWhenItsDevicesLose) {
  Precision precision;
  precision.device_drops = 1;
  EXPECT_FALSE(precision.kept_up());
}

}  // namespace
}  // namespace leeway::lab
