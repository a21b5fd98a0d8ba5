#include "budget/timing_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace leeway::budget {
namespace {

// Returns the mean of the largest of n standard normal variables, which Gumbel's formula
// approximates. The mean is the integral of x n phi(x) Phi(x)^(n-1). The error is below 1e-9 up to
// n = 10^6: the trapezoidal rule converges exponentially, because its step of 1/32 is narrow for
// every n.
double exact_largest_normal(std::uint32_t n) {
  constexpr double kStep = 1.0 / 32;
  constexpr int kSteps = 12 * 32;  // either side
  const auto tail = [](double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); };
  double sum = 0.0;
  for (int i = -kSteps; i <= kSteps; ++i) {
    const double x = i * kStep;
    const double log_below = x < 0.0 ? std::log(tail(-x)) : std::log1p(-tail(x));
    sum += x * std::exp(-0.5 * x * x + (n - 1.0) * log_below);
  }
  return sum * kStep * n / std::sqrt(2.0 * std::numbers::pi);
}

struct LargestRow {
  std::uint32_t n;
  double gumbel, exact;
};
constexpr LargestRow kLargest[] = {{2, .51976, .56419},     {8, 1.45901, 1.42360},
                                   {32, 2.09987, 2.06967},  {64, 2.36939, 2.34373},
                                   {200, 2.76552, 2.74604}, {1024, 3.26186, 3.24824}};

TEST(GumbelLargestNormal, HasTheCheckedValues) {
  for (const LargestRow& row : kLargest) {
    EXPECT_NEAR(gumbel_largest_normal(row.n), row.gumbel, 0.5e-5) << row.n;
  }
  EXPECT_EQ(gumbel_largest_normal(1), 0.0);
}

TEST(ExactLargestNormal, HasTheCheckedValues) {
  for (const LargestRow& row : kLargest) {
    EXPECT_NEAR(exact_largest_normal(row.n), row.exact, 0.5e-5) << row.n;
  }
  EXPECT_NEAR(exact_largest_normal(1), 0.0, 1e-12);
}

// The closed forms are 1/sqrt(pi) and 3/(2 sqrt(pi)).
TEST(ExactLargestNormal, AgreesWithTheClosedFormsOfTwoAndThree) {
  EXPECT_NEAR(exact_largest_normal(2), 0.56418958354775629, 1e-12);
  EXPECT_NEAR(exact_largest_normal(3), 0.84628437532163443, 1e-12);
}

struct SpeedupRow {
  double sigma;
  std::uint32_t workers;
  double slowest, threshold, drop, speedup;
};
constexpr SpeedupRow kSpeedups[] = {{.05, 64, 5.81039, 5.500, .0235, 1.02699},
                                    {.15, 64, 6.63117, 5.025, .1129, 1.14501},
                                    {.15, 200, 6.83701, 5.025, .1129, 1.17807}};

TEST(TimingModelBest, HasTheCheckedValues) {
  for (const SpeedupRow& row : kSpeedups) {
    const TimingModel model{.workers = row.workers,
                            .micro_batches = 12,
                            .micro_batch_mean_s = .45,
                            .micro_batch_deviation_s = row.sigma,
                            .overhead_s = .5};
    EXPECT_NEAR(model.slowest_s(), row.slowest, 0.5e-5);
    const ThresholdPrediction best = model.best(.005);
    EXPECT_NEAR(best.threshold_s, row.threshold, 1e-9);
    EXPECT_NEAR(best.drop_rate, row.drop, 0.5e-4);
    EXPECT_NEAR(1.0 + best.effective_speedup, row.speedup, 0.5e-5);
  }
}

TEST(TimingModelPredict, GainsNothingBeyondTheSlowestWorker) {
  const TimingModel model{8, 12, .45, .15, .5};
  EXPECT_NEAR(model.predict(100.0).effective_speedup, 0.0, 1e-12);
  EXPECT_NEAR(model.predict(100.0).drop_rate, 0.0, 1e-12);
  EXPECT_LT(model.predict(model.slowest_s()).effective_speedup, 0.0);
}

TEST(TimingModelCompleted, WithoutNoiseCountsWhatFits) {
  const TimingModel model{4, 10, 1.0, 0.0, 0.0};
  EXPECT_EQ(model.completed(0.5), 0.0);
  EXPECT_EQ(model.completed(3.0), 3.0);
  EXPECT_EQ(model.completed(20.0), 10.0);
  EXPECT_EQ(model.slowest_s(), 10.0);
}

}  // namespace
}  // namespace leeway::budget
