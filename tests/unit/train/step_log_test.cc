#include "train/step_log.h"

#include <gtest/gtest.h>

namespace leeway::tools::train {
namespace {

TEST(StepLogPercentile, IsTheNearestRank) {
  StepLog log(100);
  for (int i = 100; i >= 1; --i) log.add(1.0, i);
  EXPECT_EQ(log.percentile_ms(0.50), 50.0);
  EXPECT_EQ(log.percentile_ms(0.99), 99.0);
  EXPECT_EQ(log.percentile_ms(1.0), 100.0);
  EXPECT_EQ(log.percentile_ms(0.0), 1.0);
}

TEST(StepLogPercentile, OfOneStepIsThatStep) {
  StepLog log(1);
  log.add(1.0, 7.0);
  EXPECT_EQ(log.percentile_ms(0.50), 7.0);
  EXPECT_EQ(log.percentile_ms(0.99), 7.0);
}

TEST(StepLogStatus, ShowsMeanTimeAndSmoothedLoss) {
  StepLog log(10);
  log.add(4.0, 10.0);
  log.add(2.0, 30.0);
  const StepStatus status = log.status(0.1);
  EXPECT_EQ(status.step, 2u);
  EXPECT_EQ(status.steps, 10u);
  EXPECT_DOUBLE_EQ(status.step_ms, 20.0);
  EXPECT_DOUBLE_EQ(status.loss, 4.0 + 0.05 * (2.0 - 4.0));
  EXPECT_DOUBLE_EQ(status.loss_observed, 0.1);
  EXPECT_DOUBLE_EQ(log.seconds(), 0.04);
}

TEST(StepLogStatus, LeavesStepsWithoutALossOutOfIt) {
  StepLog log(10);
  log.add(std::nullopt, 10.0);
  EXPECT_EQ(log.status(0.0).loss, 0.0);
  log.add(4.0, 10.0);
  EXPECT_EQ(log.status(0.0).loss, 4.0);
  log.add(std::nullopt, 10.0);
  EXPECT_EQ(log.status(0.0).loss, 4.0);
  EXPECT_EQ(log.status(0.0).step, 3u);
}

}  // namespace
}  // namespace leeway::tools::train
