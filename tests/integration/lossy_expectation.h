// Test expectations from theory for the scenario lossy_average.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "integration/rank_group.h"

namespace leeway::integration {

// Mean squared error of the ratio rule on unit-variance contributions, E[1/(1+K)] - 1/N with K of
// N-1 others arriving (src/math/estimate/README.md).
inline double ratio_error(double loss, int ranks) {
  return (1.0 - std::pow(loss, ranks)) / (ranks * (1.0 - loss)) - 1.0 / ranks;
}

// `all`: facts of ranks that averaged unit-variance noise by the ratio rule over links that lose
// `loss` of the packets for good. All ranks must hold the same bits, with the mean error of an
// unbiased rule and the squared error above.
//
// Packets are lost as wholes, so the squared error is known as well as the number of packet
// positions allows: with 4 ranks, 1 MiB and 20 calls 2,400 of 8,972 B, and a standard error of 4 %
// at 10 % loss; 25 % are six of them.
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
