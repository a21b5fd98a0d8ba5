#include "link/trace_line.h"

#include <gtest/gtest.h>

namespace leeway::sim {
namespace {

TEST(TraceLine, SendsAtTheNextOpportunity) {
  TraceLine line({10, 20, 50}, 100);
  EXPECT_EQ(line.send(0, 100), 10);
  EXPECT_EQ(line.send(0, 100), 20);
  EXPECT_EQ(line.send(30, 100), 50);
}

TEST(TraceLine, SendsAtAnOpportunityOfTheSameTime) {
  TraceLine line({10, 20, 50}, 100);
  EXPECT_EQ(line.send(10, 100), 10);
  EXPECT_EQ(line.send(50, 100), 50);
}

TEST(TraceLine, SharesAnOpportunityAmongSmallPackets) {
  TraceLine line({10, 20, 50}, 100);
  EXPECT_EQ(line.send(0, 40), 10);
  EXPECT_EQ(line.send(0, 60), 10);
  EXPECT_EQ(line.start(0), 20);
  EXPECT_EQ(line.send(0, 1), 20);
}

TEST(TraceLine, SpreadsALargePacketOverSeveral) {
  TraceLine line({10, 20, 50}, 100);
  EXPECT_EQ(line.send(0, 250), 50);
  EXPECT_EQ(line.send(0, 50), 50);  // fits into the rest of the opportunity
  EXPECT_EQ(line.send(0, 1), 60);
}

TEST(TraceLine, LosesWhatIsNotUsed) {
  TraceLine line({10, 20, 50}, 100);
  EXPECT_EQ(line.send(0, 40), 10);
  EXPECT_EQ(line.send(11, 10), 20);
  EXPECT_EQ(line.send(21, 100), 50);
}

TEST(TraceLine, LosesItAlsoOverRepetitions) {
  TraceLine line({10}, 100);
  EXPECT_EQ(line.send(0, 40), 10);
  EXPECT_EQ(line.send(1005, 100), 1010);
}

TEST(TraceLine, KeepsWhatIsLeftOfTheLastOpportunityOfARepetition) {
  TraceLine line({10}, 100);
  EXPECT_EQ(line.send(0, 40), 10);
  EXPECT_EQ(line.send(10, 100), 20);
}

TEST(TraceLine, BeginsAgainAtItsLastTime) {
  TraceLine line({10, 10, 50}, 100);
  for (const std::int64_t departure : {10, 10, 50, 60, 60, 100, 110}) {
    EXPECT_EQ(line.send(0, 100), departure);
  }
}

TEST(TraceLine, SkipsRepetitionsWithoutAPacket) {
  for (const std::int64_t begin : {0, 50, 100, 5'000'000}) {
    for (std::int64_t now = begin + 1; now <= begin + 50; ++now) {
      TraceLine line({10, 20, 50}, 100);
      const std::int64_t part = now - begin;
      EXPECT_EQ(line.send(now, 1), begin + (part <= 10 ? 10 : part <= 20 ? 20 : 50)) << now;
    }
  }
}

}  // namespace
}  // namespace leeway::sim
