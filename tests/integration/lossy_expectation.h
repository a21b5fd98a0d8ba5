// Expected results of the scenario lossy_average, from theory.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "integration/rank_group.h"

namespace leeway::integration {

// Returns the mean squared error of the ratio rule for contributions of variance 1. It is
// E[1/(1+K)] - 1/N for N ranks, where K of the N-1 contributions from others arrive
// (src/math/estimate/README.md).
inline double ratio_error(double loss, int ranks) {
  return (1.0 - std::pow(loss, ranks)) / (ranks * (1.0 - loss)) - 1.0 / ranks;
}

// `all`: facts of ranks that averaged noise of variance 1 by the ratio rule, while links lost the
// share `loss` of packets for good. Expects the same bits on all ranks, a mean error of 0, and the
// squared error that ratio_error() gives.
//
// Elements of a packet are lost together, so the squared error's precision depends on the number of
// packets. With 4 ranks, 1 MiB and 20 calls there are 2,400 packets of 8,972 B, and the standard
// error is 4 % at 10 % loss. The tolerance is six standard errors, 25 %.
inline void expect_lossy_average(const std::vector<Facts>& all, double loss) {
  const double predicted = ratio_error(loss, static_cast<int>(all.size()));
  for (const Facts& facts : all) {
    ASSERT_TRUE(facts.is_object());
    ASSERT_FALSE(facts.contains("error")) << facts;
    EXPECT_EQ(facts["digest"], all[0]["digest"]) << "ranks hold different bits";
    EXPECT_EQ(facts["disagreed"], 0u);
    EXPECT_EQ(facts["deadline_cuts"], 0u);
    EXPECT_LT(std::abs(facts["mean_error"].get<double>()),
              5 * facts["standard_error"].get<double>())
        << facts;
    EXPECT_NEAR(facts["mse"].get<double>() / predicted, 1.0, 0.25) << facts;
  }
}

}  // namespace leeway::integration
