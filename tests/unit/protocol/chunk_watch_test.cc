#include "protocol/chunk_watch.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using Left = ChunkWatch::Left;

constexpr auto kNothing = std::nullopt;

// 320 packets in order, one every 10 us.
class WordsInOrder : public ::testing::Test {
 protected:
  std::optional<Left> come(std::uint32_t index) {
    return watch_.on_packet(now_ = Instant{0} + index * 10us, {index}, {index});
  }
  ChunkWatch watch_{320};
  Instant now_{0};
};

TEST_F(WordsInOrder, OneIsLeftBehindOnceLaterPacketsHaveCome) {
  for (std::uint32_t i = 0; i < 64 + ChunkWatch::kOvertaken; ++i) EXPECT_EQ(come(i), kNothing) << i;
  EXPECT_EQ(come(64 + ChunkWatch::kOvertaken), (Left{0, 64}));
  for (std::uint32_t i = 65 + ChunkWatch::kOvertaken; i < 128; ++i) EXPECT_EQ(come(i), kNothing);
}

TEST_F(WordsInOrder, ManyMayBeLost) {
  EXPECT_EQ(come(5), kNothing);
  EXPECT_EQ(come(70), kNothing);
  EXPECT_EQ(come(130), (Left{0, 64})) << "as soon as anything comes";
  EXPECT_EQ(come(200), (Left{1, 64}));
}

// The pass starts with 20 packets of the first word.
TEST_F(WordsInOrder, OfTheFirstNoMoreHaveLeftThanThePositionSays) {
  watch_.on_packet(now_, {50}, {4});
  watch_.on_packet(now_, {64}, {20});
  EXPECT_EQ(watch_.on_packet(now_, {100}, {56}), (Left{0, 20}));
}

TEST_F(WordsInOrder, TwiceAsManyMustComeAsAnyPacketWasOvertakenBy) {
  EXPECT_EQ(come(40), kNothing);
  EXPECT_EQ(come(25), kNothing) << "overtaken by 15";
  EXPECT_EQ(come(64), kNothing);
  EXPECT_EQ(come(93), kNothing);
  EXPECT_EQ(come(94), (Left{0, 64}));
}

TEST_F(WordsInOrder, WhatComesInNoOrderTellsNothing) {
  come(100);
  come(60);  // overtaken by 40: a word is over before 80 others have come
  for (std::uint32_t i = 101; i < 320; ++i) EXPECT_EQ(come(i), kNothing) << i;
}

TEST_F(WordsInOrder, PositionsBeyondTheFlowTellNothing) {
  EXPECT_EQ(come(40), kNothing);
  EXPECT_EQ(watch_.on_packet(now_, {70}, {320}), kNothing);
  EXPECT_EQ(come(100), kNothing);
  EXPECT_EQ(come(120), (Left{0, 64}));
}

TEST_F(WordsInOrder, TheRestTakesAsLongAsThePaceSays) {
  EXPECT_EQ(watch_.rest(now_), Duration::max());
  come(0);  // eager, long before the gate opens
  for (std::uint32_t i = 4; i <= 60; ++i)
    watch_.on_packet(now_ = Instant{0} + 1s + i * 10us, {i}, {i});
  EXPECT_EQ(watch_.rest(now_), 2600us);
}

}  // namespace
}  // namespace leeway::protocol
