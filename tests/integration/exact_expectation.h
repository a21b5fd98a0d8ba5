// Checks on the facts that exact scenarios report.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "integration/rank_group.h"

namespace leeway::integration {

inline void expect_no_problem(const Facts& facts) {
  ASSERT_TRUE(facts.is_object());
  ASSERT_FALSE(facts.contains("error")) << facts;
  EXPECT_EQ(facts["problems"], Facts::array()) << facts;
  EXPECT_EQ(facts["wrong"], 0u);
}

// Expects that no call failed, no element was wrong, and all losses were repaired.
inline void expect_right(const Facts& facts) {
  ASSERT_NO_FATAL_FAILURE(expect_no_problem(facts));
  EXPECT_EQ(facts["loss"], 0.0);
}

// Expects that the share `loss` of packets was lost before repair, in bursts of `burst` packets on
// average. The tolerance is as wide as ten standard errors, because packets that waited at the
// ready gate are counted as repaired, too.
inline void expect_loss_near(const Facts& facts, double loss, double burst = 1.0) {
  const double independent = facts["packets"].get<double>() / (2.0 * burst - 1.0);
  const double sigma = std::sqrt(loss * (1.0 - loss) / independent);
  EXPECT_NEAR(facts["loss_first_pass"].get<double>(), loss, 10 * sigma) << facts;
}

}  // namespace leeway::integration
