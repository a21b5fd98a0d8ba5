#include "congestion/noise_floor.h"

#include <random>

#include <gtest/gtest.h>

namespace leeway::congestion {
namespace {

constexpr double kMargin = 0.02;

TEST(NoiseFloor, WithoutTeachingAnyLossBeyondTheMarginIsExcess) {
  const NoiseFloor floor;
  EXPECT_EQ(floor.excess(1000, 19, kMargin), 0);
  EXPECT_EQ(floor.excess(1000, 30, kMargin), 30);
}

TEST(NoiseFloor, FewLossesOfASmallWindowAreChance) {
  const NoiseFloor floor;
  EXPECT_EQ(floor.excess(20, 3, kMargin), 0);
  EXPECT_EQ(floor.excess(20, 4, kMargin), 4);
}

TEST(NoiseFloor, IsRelativeToWhatWasTaught) {
  NoiseFloor floor;
  floor.teach(10'000, 1000);
  EXPECT_NEAR(floor.mean(), 0.1, 1e-12);
  EXPECT_EQ(floor.excess(1000, 130, kMargin), 0);
  EXPECT_GT(floor.excess(1000, 160, kMargin), 55);
}

TEST(NoiseFloor, CountsOnLessThanItsMean) {
  NoiseFloor floor;
  floor.teach(100, 10);
  EXPECT_NEAR(floor.value(), 0.1 - 1.5 * 0.03, 1e-9);
  floor.teach(9900, 990);
  EXPECT_NEAR(floor.value(), 0.1 - 1.5 * 0.003, 1e-9);
}

TEST(NoiseFloor, NeverTakesMoreThanItsLimitForNoise) {
  NoiseFloor floor;
  floor.teach(100, 60);
  EXPECT_EQ(floor.mean(), NoiseFloor::kMax);
}

// A flow that begins while a queue stands takes that queue's losses for noise, so the floor must
// forget them.
TEST(NoiseFloor, ForgetsWhatIsTooMuchForNoise) {
  NoiseFloor floor;
  floor.teach(10'000, 1000);
  for (int i = 0; i < 10; ++i) floor.teach(1000, 450);
  EXPECT_GT(floor.excess(1000, 450, kMargin), 0);
  floor.teach(1000, 100);
  EXPECT_NEAR(floor.mean(), 0.1, 0.05);
}

// 7 is about the standard deviation of independent losses here, and 28 is four times as much.
TEST(NoiseFloor, LearnsThatLossesComeInBursts) {
  NoiseFloor single;
  NoiseFloor bursts;
  for (int i = 0; i < 64; ++i) {
    const int sign = i % 2 == 0 ? 1 : -1;
    single.teach(1000, 50 + 7 * sign);
    bursts.teach(1000, 50 + 28 * sign);
  }
  EXPECT_EQ(single.burst(), 2);
  EXPECT_NEAR(bursts.burst(), 28.0 * 28 / (0.05 * 0.95 * 1000), 1.5);
  EXPECT_GT(single.excess(1000, 100, kMargin), 0);
  EXPECT_EQ(bursts.excess(1000, 100, kMargin), 0);
  EXPECT_GT(bursts.excess(1000, 160, kMargin), 0);
  EXPECT_TRUE(single.more(1000, 90));
  EXPECT_FALSE(bursts.more(1000, 90));
}

TEST(NoiseFloor, ExcusesNoMoreThanBurstsOfAFewPackets) {
  NoiseFloor floor;
  for (int i = 0; i < 64; ++i) floor.teach(1000, i % 4 == 0 ? 200 : 0);
  EXPECT_EQ(floor.burst(), 32);
}

TEST(NoiseFloor, TakesFewLossesForNoBurst) {
  NoiseFloor floor;
  floor.teach(10'000, 0);
  floor.teach(1000, 8);
  floor.teach(100, 8);
  EXPECT_EQ(floor.burst(), 2);
}

TEST(NoiseFloor, ForgetsWhatIsOld) {
  NoiseFloor floor;
  floor.teach(20'000, 4000);
  for (int i = 0; i < 10; ++i) floor.teach(10'000, 0);
  EXPECT_LT(floor.mean(), 0.005);
}

// The bound is three standard deviations at twice the variance, or 4.2 standard deviations of
// independent losses. So less than one of 20,000 windows is expected to exceed the bound.
TEST(NoiseFloor, IndependentLossesAreNotExcess) {
  std::mt19937_64 random(7);
  NoiseFloor floor;
  floor.teach(10'000, 1000);
  int excesses = 0;
  for (int window = 0; window < 20'000; ++window) {
    int lost = 0;
    for (int i = 0; i < 200; ++i) lost += random() % 10 == 0;
    excesses += floor.excess(200, lost, 0) > 0;
  }
  EXPECT_LE(excesses, 6);
}

// A floor was once learnt from eight packets. Three of them were lost. The bundle then kept sending
// at twice its share, at 57 % loss, for ever.
TEST(NoiseFloor, WhatFewPacketsTaughtExcusesNoFlood) {
  NoiseFloor floor;
  floor.teach(8, 3);
  EXPECT_GT(floor.excess(1000, 570, 0.02), 0);
  EXPECT_EQ(floor.excess(1000, 200, 0.02), 0);
}

}  // namespace
}  // namespace leeway::congestion
