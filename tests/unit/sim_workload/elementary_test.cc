#include "workload/elementary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace leeway::sim {
namespace {

TEST(PortableExp, AgreesWithTheMathematicsLibrary) {
  for (int i = -70'000; i <= 70'000; ++i) {
    const double x = 0.0101 * i;
    const double exact = std::exp(x);
    ASSERT_NEAR(portable_exp(x), exact, 4e-16 * exact) << x;
  }
}

TEST(PortableExp, IsExactWhereTheResultIs) {
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_exp(-709), 0);
  EXPECT_EQ(portable_exp(-std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(portable_exp(1e9), portable_exp(709));
  EXPECT_LT(portable_exp(1e9), std::numeric_limits<double>::infinity());
}

TEST(PortableLog, AgreesWithTheMathematicsLibrary) {
  double x = 1e-300;
  for (; x < 1e300; x *= 1.0101) {
    const double exact = std::log(x);
    ASSERT_NEAR(portable_log(x), exact, 3e-16 * std::max(1.0, std::fabs(exact))) << x;
  }
  for (int i = 1; i < 4000; ++i) {
    const double near_one = 1 + (i - 2000) * 1e-4;
    ASSERT_NEAR(portable_log(near_one), std::log(near_one), 3e-16) << near_one;
  }
}

TEST(LogisticFunction, AgreesWithTheMathematicsLibrary) {
  for (int i = -8000; i <= 8000; ++i) {
    const double x = 0.01 * i;
    const double exact = 1 / (1 + std::exp(-x));
    ASSERT_NEAR(logistic_function(x), exact, 1e-15 * exact) << x;
  }
}

TEST(Softplus, AgreesWithTheMathematicsLibrary) {
  for (int i = -8000; i <= 8000; ++i) {
    const double x = 0.01 * i;
    const double exact = x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    ASSERT_NEAR(softplus(x), exact, 4e-16 * std::max(1.0, exact)) << x;
  }
}

}  // namespace
}  // namespace leeway::sim
