#include "congestion/delay_jitter.h"

#include <random>

#include <gtest/gtest.h>

namespace leeway::congestion {
namespace {

double deviation_us(const DelayJitter& jitter) {
  return static_cast<double>(jitter.deviation().count()) / 1e3;
}

TEST(DelayJitter, IsTheDeviationOfIndependentDelays) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> delay_ns(5e6, 1e6);
  double sum = 0;
  for (int line = 0; line < 200; ++line) {
    DelayJitter jitter;
    for (int report = 0; report < 200; ++report)
      jitter.add(static_cast<std::int64_t>(delay_ns(random)));
    sum += deviation_us(jitter);
  }
  // The median of 128 overlapping values has a standard error of 14 %, so the mean of 200 lines has
  // 14 % / sqrt(200) = 1 %. The tolerance is four such errors, plus 2 % by which the upper of two
  // middle values is too large.
  EXPECT_NEAR(sum / 200, 1000, 40 + 20);
}

// A queue grows to about 4 ms over ten reports, drains in two, and stays away for four. This must
// not count as jitter.
TEST(DelayJitter, AQueueThatGrowsAndDrainsIsNone) {
  DelayJitter jitter;
  for (int report = 0; report < 200; ++report) {
    const int at = report % 16;
    jitter.add(at < 10 ? 400'000 * at : at == 10 ? 2'000'000 : 0);
  }
  EXPECT_LT(deviation_us(jitter), 1);
}

TEST(DelayJitter, FewReportsSayNothing) {
  DelayJitter jitter;
  for (int report = 0; report < 31; ++report) jitter.add(report % 2 * 1'000'000);
  EXPECT_FALSE(jitter.known());
  EXPECT_EQ(jitter.deviation().count(), 0);
  for (int report = 0; report < 8; ++report) jitter.add(report % 2 * 1'000'000);
  EXPECT_TRUE(jitter.known());
  EXPECT_GT(jitter.deviation().count(), 0);
}

}  // namespace
}  // namespace leeway::congestion
