#include "protocol/missed_rounds.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

TEST(MissedRounds, AreCountedBackFromTheLatestOpened) {
  MissedRounds missed;
  EXPECT_EQ(missed.bits(0), 0u);
  EXPECT_EQ(missed.bits(100), 0u);
  missed.note(100, 101);
  EXPECT_EQ(missed.bits(101), 1u);
  EXPECT_EQ(missed.bits(103), 4u);
  missed.note(101, 104);
  EXPECT_EQ(missed.bits(104), 0b1100u);
}

TEST(MissedRounds, AreForgottenAfterTwentyFour) {
  MissedRounds missed;
  missed.note(7, 8);
  EXPECT_EQ(missed.bits(31), 1u << 23);
  EXPECT_EQ(missed.bits(32), 0u);
  missed.note(7, 40);
  EXPECT_EQ(missed.bits(40), 0u);
  missed.note(39, 40);
  EXPECT_EQ(missed.bits(40), 1u) << "what came before must not come back";
}

TEST(MissedRounds, SurviveTheWrapOfNumbers) {
  MissedRounds missed;
  missed.note(UINT32_MAX, 0);
  EXPECT_EQ(missed.bits(2), 4u);
}

}  // namespace
}  // namespace leeway::protocol
