// Checks that two transports with the same packet losses give the same results and reports. Both
// run the scenario "outcomes".
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "integration/rank_group.h"

namespace leeway::integration {

// Settings for both transports. Equal datagram sizes give equal packets. The faults also damage
// some packets (`corrupt`), which receivers must detect.
inline const Environment kSameLosses = {
    {"LEEWAY_FAULT", "loss=0.15,burst=3,dup=0.05,corrupt=0.02,seed=9"},
    {"LEEWAY_SEED", "42"},
    {"LEEWAY_DATAGRAM_BYTES", "1024"}};

inline void expect_same_outcomes(const std::vector<Facts>& one, const std::vector<Facts>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t rank = 0; rank < one.size(); ++rank) {
    ASSERT_TRUE(one[rank].is_object() && other[rank].is_object());
    EXPECT_GT(one[rank]["lost"], 0.5) << "without losses nothing is compared";
    EXPECT_EQ(one[rank], other[rank]) << Facts::diff(one[rank], other[rank]);
  }
}

}  // namespace leeway::integration
