// Compares the predictions with published tables and vectors. drift_walk_test.cc compares them with
// a simulated walk.
#include "estimate/drift.h"

#include <gtest/gtest.h>

#include <cmath>

namespace leeway::estimate {
namespace {

constexpr double kSixDecimals = 0.6e-6;

struct DriftRow {
  double p, differ, pair, owner, pair_mean, owner_mean;
};
constexpr DriftRow kTable[] = {
    {0.001, 0.001998, 0.002000, 0.001001, 0.002004, 0.001003},
    {0.01, 0.019802, 0.020002, 0.010101, 0.020406, 0.010305},
    {0.05, 0.095238, 0.100251, 0.052632, 0.110803, 0.058172},
    {0.1, 0.181818, 0.202020, 0.111111, 0.246914, 0.135802},
    {0.2, 0.333333, 0.416667, 0.250000, 0.625000, 0.375000},
    {0.3, 0.461538, 0.659341, 0.428571, 1.224490, 0.795918},
    {0.4, 0.571429, 0.952381, 0.666667, 2.222222, 1.555556},
};

TEST(DriftIndependent, GivesThePublishedTable) {
  for (const DriftRow& row : kTable) {
    const DriftModel model = independent_drift(row.p);
    EXPECT_NEAR(model.differ, row.differ, kSixDecimals) << row.p;
    EXPECT_NEAR(model.pair.variance, row.pair, kSixDecimals) << row.p;
    EXPECT_NEAR(model.owner.variance, row.owner, kSixDecimals) << row.p;
    EXPECT_NEAR(model.pair.mean, row.pair_mean, kSixDecimals) << row.p;
    EXPECT_NEAR(model.owner.mean, row.owner_mean, kSixDecimals) << row.p;
    EXPECT_NEAR(model.age_mean, row.p / (1 - row.p), 1e-12) << row.p;
  }
}

TEST(DriftIndependent, IsTheSumOverAllAges) {
  constexpr double kP = 0.3;
  const auto age = [](int k) { return (1 - kP) * std::pow(kP, k); };
  double same = 0.0, apart = 0.0, apart_square = 0.0, owner = 0.0, owner_square = 0.0;
  for (int a = 0; a < 60; ++a) {
    owner += age(a) * a;
    owner_square += age(a) * a * a;
    for (int b = 0; b < 60; ++b) {
      const double probability = age(a) * age(b);
      if (a == b) same += probability;
      apart += probability * std::abs(a - b);
      apart_square += probability * (a - b) * (a - b);
    }
  }
  const DriftModel model = independent_drift(kP);
  EXPECT_NEAR(model.differ, 1 - same, 1e-9);
  EXPECT_NEAR(model.pair.variance, apart, 1e-9);
  EXPECT_NEAR(model.pair.mean, apart_square, 1e-9);
  EXPECT_NEAR(model.owner.variance, owner, 1e-9);
  EXPECT_NEAR(model.owner.mean, owner_square, 1e-9);
}

TEST(DriftIndependent, WithoutLossThereIsNone) {
  const DriftModel model = independent_drift(0.0);
  EXPECT_EQ(model.differ, 0.0);
  EXPECT_EQ(model.pair.of(3.0, 2.0), 0.0);
  EXPECT_EQ(model.owner.of(3.0, 2.0), 0.0);
}

TEST(DriftIndependent, ADeadLinkHasNoBoundUnlessNothingMoves) {
  const DriftModel model = independent_drift(1.0);
  EXPECT_TRUE(std::isinf(model.pair.of(1.0, 0.0)));
  EXPECT_TRUE(std::isinf(model.owner.of(0.0, 1.0)));
  EXPECT_EQ(model.owner.of(0.0, 0.0), 0.0);
}

TEST(DriftFromGap, AgreesWithTheStepFormForARandomWalk) {
  // The gap of a random walk is s^2/(1-p), so 2p/(1+p) of the gap is 2p/(1-p^2) s^2. A likely
  // mistake gives 2p/(1+p) s^2.
  for (const DriftRow& row : kTable) {
    const double step_variance = 1.7;
    const double gap = step_variance / (1.0 - row.p);
    EXPECT_NEAR(pair_drift_from_gap(row.p, gap),
                independent_drift(row.p).pair.of(step_variance, 0.0), 1e-12);
  }
}

}  // namespace
}  // namespace leeway::estimate
