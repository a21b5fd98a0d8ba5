// Test expectations for the facts of exact scenarios.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "integration/rank_group.h"

namespace leeway::integration {

// Expects that no call failed and no element was wrong, as far as every call reported.
inline void expect_no_problem(const Facts& facts) {
  ASSERT_TRUE(facts.is_object());
  ASSERT_FALSE(facts.contains("error")) << facts;
  EXPECT_EQ(facts["problems"], Facts::array()) << facts;
  EXPECT_EQ(facts["wrong"], 0u);
}

// Expects that everything was right, nothing failed, and nothing is missing in the end.
inline void expect_right(const Facts& facts) {
  ASSERT_NO_FATAL_FAILURE(expect_no_problem(facts));
  EXPECT_EQ(facts["loss"], 0.0);
}

// Expects this loss before repair, within ten standard errors. The standard error is that of bursts
// of `burst` packets on average, lost independently. Ten are allowed because packets of small flows
// that waited for a gate count as repaired, too.
inline void expect_loss_near(const Facts& facts, double loss, double burst = 1.0) {
  const double independent = facts["packets"].get<double>() / (2.0 * burst - 1.0);
  const double sigma = std::sqrt(loss * (1.0 - loss) / independent);
  EXPECT_NEAR(facts["loss_first_pass"].get<double>(), loss, 10 * sigma) << facts;
}

}  // namespace leeway::integration
