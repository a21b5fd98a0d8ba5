#include "protocol/chunk_watch.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using Left = ChunkWatch::Left;
using schedule::PacketCursor;
using schedule::PacketGrid;

constexpr auto kNothing = std::nullopt;

constexpr std::uint64_t bits(unsigned from, unsigned end) {
  return (end == 64 ? 0 : std::uint64_t{1} << end) - (std::uint64_t{1} << from);
}

// 320 packets that are sent in order in chunks of 64, one every 10 us.
class InOrder : public ::testing::Test {
 protected:
  std::optional<Left> come(std::uint32_t index) {
    return watch_.on_packet(now_ = Instant{0} + index * 10us, {index}, {index});
  }
  ChunkWatch watch_{PacketGrid(320, 1, 1), PacketCursor::kInOrder};
  Instant now_{0};
};

TEST_F(InOrder, AStepIsToldOnceLaterPacketsHaveCome) {
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(come(i), kNothing) << i;
  for (std::uint32_t i = 32; i < 320; ++i) {
    const std::uint32_t step = i / 16 - 2;
    const Left left{step / 4, bits(step % 4 * 16, step % 4 * 16 + 16)};
    EXPECT_EQ(come(i), i % 16 == 0 ? std::optional(left) : kNothing) << i;
  }
}

TEST_F(InOrder, ManyMayBeLost) {
  EXPECT_EQ(come(5), kNothing);
  EXPECT_EQ(come(70), kNothing);
  EXPECT_EQ(come(130), (Left{0, bits(0, 64)})) << "as soon as anything comes";
  EXPECT_EQ(come(200), (Left{1, bits(0, 64)}));
}

// The pass starts at packet 44. Of the first chunk only packets 44 to 63 have left, so only these
// may be reported.
TEST_F(InOrder, OfTheFirstChunkNoMoreIsToldThanHasLeft) {
  watch_.on_packet(now_, {50}, {6});
  watch_.on_packet(now_, {64}, {20});
  EXPECT_EQ(watch_.on_packet(now_, {100}, {56}), (Left{0, bits(44, 64)}));
}

TEST_F(InOrder, TwiceAsManyMustComeAsAnyPacketWasOvertakenBy) {
  EXPECT_EQ(come(40), kNothing);
  EXPECT_EQ(come(25), kNothing) << "overtaken by 15";
  EXPECT_EQ(come(69), kNothing);
  EXPECT_EQ(come(70), (Left{0, bits(0, 40)}));
  EXPECT_EQ(come(93), kNothing);
  EXPECT_EQ(come(94), (Left{0, bits(40, 64)}));
}

TEST_F(InOrder, WhatComesInNoOrderTellsNothing) {
  come(100);
  come(60);  // overtaken by 40 packets: 80 later ones would have to come
  for (std::uint32_t i = 101; i < 320; ++i) EXPECT_EQ(come(i), kNothing) << i;
}

TEST_F(InOrder, PositionsBeyondTheFlowTellNothing) {
  EXPECT_EQ(come(40), kNothing);
  EXPECT_EQ(watch_.on_packet(now_, {70}, {320}), kNothing);
  EXPECT_EQ(come(55), kNothing);
  EXPECT_EQ(come(56), (Left{0, bits(0, 40)}));
}

TEST_F(InOrder, TheRestTakesAsLongAsThePaceSays) {
  EXPECT_EQ(watch_.rest(now_), Duration::max());
  come(0);  // eager packets, long before the gate opens
  for (std::uint32_t i = 4; i <= 60; ++i)
    watch_.on_packet(now_ = Instant{0} + 1s + i * 10us, {i}, {i});
  EXPECT_EQ(watch_.rest(now_), 2600us);
}

// Receives packets in the sender's order, with a tenth lost. The watch must report each lost packet
// once, soon after it has left.
void follow_cursor(const PacketGrid& grid, std::uint64_t key, PacketCursor cursor) {
  ChunkWatch watch(grid, key);
  std::mt19937 random(7);
  std::vector<std::uint32_t> left_at(grid.packets(), UINT32_MAX);
  std::vector<int> told(grid.packets());
  while (!cursor.exhausted()) {
    const PacketPosition position = cursor.position();
    const PacketIndex index = *cursor.next();
    left_at[index.value] = position.value;
    if (random() % 10 == 0) continue;
    const auto left = watch.on_packet(Instant{0}, index, position);
    if (!left) continue;
    for (std::uint64_t rest = left->packets; rest != 0; rest &= rest - 1) {
      const std::uint32_t at = left->word * 64 + static_cast<std::uint32_t>(std::countr_zero(rest));
      ASSERT_LT(at, grid.packets());
      EXPECT_LE(left_at[at] + ChunkWatch::kOvertaken, position.value);
      EXPECT_EQ(++told[at], 1) << at;
    }
  }
  for (std::uint32_t i = 0; i < grid.packets(); ++i) {
    if (left_at[i] + 64 >= grid.packets()) continue;
    EXPECT_EQ(told[i], 1) << i << " left at " << left_at[i];
  }
}

TEST(ChunkWatch, FollowsASendersOrder) {
  for (std::uint64_t key = 1; key <= 20; ++key) {
    SCOPED_TRACE(key);
    const PacketGrid grid(187, 1, 1);  // the last chunk is a short one
    follow_cursor(grid, key, {grid, {.rotation = key, .inner = key}, nullptr});
    const PacketGrid small(187, 4096, 4);  // packets of 16 KiB, eight in a chunk
    follow_cursor(small, key, {small, {.rotation = key, .inner = key}, nullptr});
  }
}

TEST(ChunkWatch, FollowsAReductionsOrder) {
  const PacketGrid grid(500, 1, 1);
  schedule::ChunkQueue queue;
  queue.reset(grid.chunks());
  for (const std::uint32_t chunk : {3, 7, 0, 1, 6, 2, 5, 4}) queue.push({chunk});
  follow_cursor(grid, 9, {grid, {.inner = 9}, &queue});
}

// A peer may claim any position, but the watch must report only packets of the flow.
TEST(ChunkWatch, NeverTellsOfPacketsThatTheFlowHasNot) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 50; ++turn) {
    const std::uint32_t packets = 5 + random() % 200;
    ChunkWatch watch(PacketGrid(packets, 1, 1), random() % 3);
    for (int i = 0; i < 300; ++i) {
      const auto left =
          watch.on_packet(Instant{0}, {static_cast<std::uint32_t>(random() % packets)},
                          {static_cast<std::uint32_t>(random() % (packets + 2))});
      if (!left) continue;
      ASSERT_LT(left->word, (packets + 63) / 64);
      const std::uint32_t in_word = std::min(64u, packets - left->word * 64);
      EXPECT_EQ(left->packets & ~bits(0, in_word), 0u);
    }
  }
}

}  // namespace
}  // namespace leeway::protocol
