#include "congestion/late_arrivals.h"

#include <gtest/gtest.h>

namespace leeway::congestion {
namespace {

TEST(LateArrivals, WhatIsMissingOnAPathThatKeepsOrderIsLostAtOnce) {
  LateArrivals late;
  EXPECT_EQ(late.lost(0), 0);
  EXPECT_EQ(late.lost(7), 7);
  EXPECT_EQ(late.lost(7), 0);
  EXPECT_EQ(late.lost(9), 2);
}

TEST(LateArrivals, WhatCameAfterAllIsTakenBack) {
  LateArrivals late;
  EXPECT_EQ(late.lost(20), 20);
  EXPECT_EQ(late.lost(12), -8);
  EXPECT_EQ(late.lost(0), -12);
}

TEST(LateArrivals, AsManyAsCameLateBeforeAreNotLost) {
  LateArrivals late;
  late.lost(20);
  late.lost(0);
  for (const std::int64_t missing : {5, 20, 11, 20, 3, 0}) EXPECT_EQ(late.lost(missing), 0);
}

// In each report 3 more packets are lost for good, and up to 20 other packets are late. Only the
// lost packets may count, within 20.
TEST(LateArrivals, LossAmongLateOnesIsCounted) {
  LateArrivals late;
  std::int64_t lost = 0;
  for (int report = 0; report < 4000; ++report) lost += late.lost(3 * report + (report * 7) % 21);
  EXPECT_GE(lost, 3 * 3999 - 20);
  EXPECT_LE(lost, 3 * 3999 + 20);
}

TEST(LateArrivals, NoLateOnesForLongAreForgotten) {
  LateArrivals late;
  late.lost(20);
  late.lost(0);
  for (int report = 0; report < 2100; ++report) late.lost(0);
  EXPECT_EQ(late.lost(6), 6);
}

}  // namespace
}  // namespace leeway::congestion
