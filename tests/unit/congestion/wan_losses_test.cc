#include "congestion/wan_losses.h"

#include <gtest/gtest.h>

namespace leeway::congestion {
namespace {

using namespace std::chrono_literals;

constexpr Instant kNow{1'000'000'000};

WanRound round_of(double covered, double lost, bool marked = false) {
  return {.loss = {covered, lost}, .marked = marked};
}

// Teaches that the network itself loses a tenth.
void teach_a_tenth(WanLosses& losses) {
  losses.teach({10'000, 1000});
}

TEST(WanLosses, RoundTripsOfFewPacketsCountTogether) {
  WanLosses losses;
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(losses.overflowed(round_of(10, 1.2))) << i;
  EXPECT_TRUE(losses.overflowed(round_of(10, 1.2)));
  EXPECT_FALSE(losses.overflowed(round_of(10, 1.2))) << "the earlier ones were judged";
}

TEST(WanLosses, LossThatTheFloorExplainsIsNoOverflow) {
  WanLosses losses;
  teach_a_tenth(losses);
  EXPECT_FALSE(losses.overflowed(round_of(1000, 120)));
  EXPECT_TRUE(losses.overflowed(round_of(1000, 300)));
}

TEST(WanLosses, BesideOthersLessLossCounts) {
  WanLosses losses;
  EXPECT_FALSE(losses.overflowed(round_of(1000, 2)));
  losses.judge_anew();
  EXPECT_TRUE(losses.lossy_beside_others(round_of(1000, 2)));
  EXPECT_FALSE(losses.lossy_beside_others(round_of(1000, 0)));
}

TEST(WanLosses, AnOverflowThatTheFloorExplainsLaterWasNone) {
  WanLosses losses;
  EXPECT_TRUE(losses.overflowed(round_of(1000, 110)));
  EXPECT_FALSE(losses.overflow_was_noise());
  teach_a_tenth(losses);
  EXPECT_TRUE(losses.overflow_was_noise());
}

TEST(WanLosses, AMarkIsNeverNoise) {
  WanLosses losses;
  teach_a_tenth(losses);
  EXPECT_TRUE(losses.overflowed(round_of(1000, 0, true)));
  EXPECT_FALSE(losses.overflow_was_noise());
  losses.on_cut(kNow, 8e6, true);
  EXPECT_FALSE(losses.take_back(kNow));
}

TEST(WanLosses, CutsForNoiseAreTakenBackOnce) {
  WanLosses losses;
  ASSERT_TRUE(losses.overflowed(round_of(1000, 110)));
  losses.on_cut(kNow, 8e6, true);
  ASSERT_TRUE(losses.overflowed(round_of(1000, 110)));
  losses.on_cut(kNow + 1s, 7e6, true);
  EXPECT_FALSE(losses.take_back(kNow + 1s)) << "the floor does not know of them";
  teach_a_tenth(losses);
  EXPECT_EQ(losses.take_back(kNow + 2s), 8e6) << "the rate before the first cut";
  EXPECT_FALSE(losses.take_back(kNow + 2s));
}

TEST(WanLosses, CutsAreDoubtedForThreeSeconds) {
  WanLosses losses;
  ASSERT_TRUE(losses.overflowed(round_of(1000, 110)));
  losses.on_cut(kNow, 8e6, true);
  teach_a_tenth(losses);
  EXPECT_FALSE(losses.take_back(kNow + 3s + 1ns));
}

TEST(WanLosses, ACutForAQueueIsNotTakenBack) {
  WanLosses losses;
  ASSERT_TRUE(losses.overflowed(round_of(1000, 110)));
  losses.on_cut(kNow, 8e6, true);
  losses.on_cut(kNow, 7e6, false);
  teach_a_tenth(losses);
  EXPECT_FALSE(losses.take_back(kNow));
}

}  // namespace
}  // namespace leeway::congestion
