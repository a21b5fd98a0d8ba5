#include "train/noise_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace leeway::tools::train {
namespace {

NoiseReport measured(double gradient, double dispersion, double quantisation, double loss) {
  return {.measured = true,
          .gradient_mean_square = gradient,
          .dispersion = dispersion,
          .quantisation_variance = quantisation,
          .loss_variance = loss};
}

TEST(NoiseLogMean, IsNothingBeforeAMeasurement) {
  NoiseLog log;
  EXPECT_FALSE(log.mean().has_value());
  log.add(NoiseReport{});
  EXPECT_FALSE(log.mean().has_value());
}

TEST(NoiseLogMean, OfEqualReportsIsThatReport) {
  NoiseLog log;
  for (int i = 0; i < 500; ++i) log.add(measured(4.0, 3.0, 0.5, 0.25));
  const auto mean = log.mean();
  ASSERT_TRUE(mean.has_value());
  EXPECT_NEAR(mean->gradient_mean_square, 4.0, 1e-12);
  EXPECT_NEAR(mean->dispersion, 3.0, 1e-12);
  EXPECT_NEAR(mean->quantisation_variance, 0.5, 1e-12);
  EXPECT_NEAR(mean->loss_variance, 0.25, 1e-12);
  EXPECT_NEAR(mean->ratio(), std::sqrt(4.0 / 0.75), 1e-12);
}

// |gradient|^2 of single steps scatters around 1 and is often negative. A mean of ratios would be 0
// half of the time.
TEST(NoiseLogMean, FormsTheRatioOfAveragesNotTheAverageOfRatios) {
  NoiseLog log;
  for (int i = 0; i < 2000; ++i) log.add(measured(i % 2 == 0 ? 5.0 : -3.0, 0.0, 0.0, 1.0));
  // The newer value of each pair, -3, weighs a little more than half, so the mean is about 0.98: 1
  // less 4 tanh(1/200).
  EXPECT_NEAR(log.mean()->gradient_mean_square, 1.0, 0.03);
  EXPECT_NEAR(log.mean()->ratio(), 1.0, 0.02);
}

TEST(NoiseLogMean, ForgetsOverAHundredSteps) {
  NoiseLog log;
  for (int i = 0; i < 2000; ++i) log.add(measured(1.0, 0.0, 0.0, 0.0));
  for (int i = 0; i < 100; ++i) log.add(measured(0.0, 0.0, 0.0, 0.0));
  EXPECT_NEAR(log.mean()->gradient_mean_square, std::exp(-1.0), 1e-6);
}

TEST(NoiseLogAdd, LeavesOutWhatIsNotFinite) {
  NoiseLog log;
  log.add(measured(1.0, 1.0, 1.0, 1.0));
  const double infinity = std::numeric_limits<double>::infinity();
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  log.add(measured(not_a_number, 1.0, 1.0, 1.0));
  log.add(measured(1.0, infinity, 1.0, 1.0));
  log.add(measured(1.0, 1.0, not_a_number, 1.0));
  log.add(measured(1.0, 1.0, 1.0, -infinity));
  EXPECT_DOUBLE_EQ(log.mean()->gradient_mean_square, 1.0);
  EXPECT_DOUBLE_EQ(log.mean()->dispersion, 1.0);
  EXPECT_DOUBLE_EQ(log.mean()->quantisation_variance, 1.0);
  EXPECT_DOUBLE_EQ(log.mean()->loss_variance, 1.0);
}

}  // namespace
}  // namespace leeway::tools::train
