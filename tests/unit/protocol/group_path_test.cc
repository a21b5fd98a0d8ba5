#include "protocol/group_path.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

TEST(GroupPath, WhoReportsNothingHearsNothing) {
  GroupPath path;
  EXPECT_FALSE(path.hears());
  EXPECT_TRUE(path.on_report(/*sent=*/5, /*largest=*/0));
  EXPECT_FALSE(path.hears());
  EXPECT_TRUE(path.on_report(5, 3));
  EXPECT_TRUE(path.hears());
  EXPECT_EQ(path.in_flight(5), 2u);
}

TEST(GroupPath, OvertakenReportsChangeNothing) {
  GroupPath path;
  path.on_report(9, 7);
  EXPECT_TRUE(path.on_report(9, 4));
  EXPECT_EQ(path.in_flight(9), 2u);
}

TEST(GroupPath, WhatWasNeverSentIsRefused) {
  GroupPath path;
  EXPECT_FALSE(path.on_report(5, 6));
  EXPECT_FALSE(path.hears());
}

TEST(GroupPath, WhoWasGivenUpComesBackWithNews) {
  GroupPath path;
  path.on_report(5, 5);
  path.give_up();
  EXPECT_TRUE(path.on_report(6, 5));
  EXPECT_FALSE(path.hears()) << "nothing new";
  path.on_report(6, 6);
  EXPECT_TRUE(path.hears());
}

TEST(GroupPath, NumbersMayWrap) {
  GroupPath path;
  path.on_report(0x7FFFFFFF, 0x7FFFFFFF);
  path.on_report(0xFFFFFFF0, 0xFFFFFFF0);
  EXPECT_TRUE(path.on_report(3, 2));
  EXPECT_EQ(path.in_flight(3), 1u);
  EXPECT_FALSE(path.on_report(3, 4));
}

TEST(GroupPath, CountsWhatIsNotReportedByNumbers) {
  GroupPath path;
  path.on_arrival(4);
  path.on_arrival(2);
  EXPECT_EQ(path.largest_seen(), 4u);
  EXPECT_EQ(path.unreported(), 4u);
  path.on_reported();
  EXPECT_EQ(path.unreported(), 0u);
  path.on_arrival(6);
  EXPECT_EQ(path.unreported(), 2u);
}

}  // namespace
}  // namespace leeway::protocol
