// Tests moments within 5 standard errors of 2^16 samples.
#include "codec/standard_data.h"

#include <gtest/gtest.h>

#include <cmath>

namespace leeway::tools::codecs {
namespace {

constexpr std::size_t kStandardSamples = std::size_t{1} << 16;

struct Moments {
  double mean = 0.0;
  double variance = 0.0;
  double fourth = 0.0;  // mean of x^4
};

template <typename Map>
Moments moments_of(const std::vector<float>& values, Map map) {
  Moments m;
  for (const float value : values) {
    const double x = map(value);
    m.mean += x;
    m.variance += x * x;
    m.fourth += x * x * x * x;
  }
  const auto count = static_cast<double>(values.size());
  m.mean /= count;
  m.variance = m.variance / count - m.mean * m.mean;
  m.fourth /= count;
  return m;
}

TEST(NormalValues, HaveTheMomentsOfTheNormalDistribution) {
  const auto m = moments_of(normal_values(kStandardSamples, 1), [](float x) { return double{x}; });
  const double n = kStandardSamples;
  EXPECT_NEAR(m.mean, 0.0, 5 / std::sqrt(n));
  EXPECT_NEAR(m.variance, 1.0, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(m.fourth, 3.0, 5 * std::sqrt(96 / n));  // variance of z^4: 105 - 9
}

TEST(LognormalValues, LogarithmsHaveTheWantedSpread) {
  const auto values = lognormal_values(kStandardSamples, 2.0, 1);
  const auto m = moments_of(values, [](float x) { return std::log(std::abs(double{x})); });
  EXPECT_NEAR(m.mean, 0.0, 5 * 2.0 / std::sqrt(kStandardSamples));
  EXPECT_NEAR(m.variance, 4.0, 5 * 4.0 * std::sqrt(2.0 / kStandardSamples));
}

TEST(LognormalValues, SignsAreEven) {
  const auto values = lognormal_values(kStandardSamples, 1.0, 1);
  const auto m = moments_of(values, [](float x) { return x < 0 ? -1.0 : 1.0; });
  EXPECT_NEAR(m.mean, 0.0, 5 / std::sqrt(kStandardSamples));
}

TEST(NormalValues, DependOnTheSeedAlone) {
  EXPECT_EQ(normal_values(100, 1), normal_values(100, 1));
  EXPECT_NE(normal_values(100, 1), normal_values(100, 2));
}

}  // namespace
}  // namespace leeway::tools::codecs
