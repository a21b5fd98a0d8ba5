// Tests bitmaps at the edges of their words, where errors are likely.
#include "base/bitmap.h"

#include <gtest/gtest.h>

namespace leeway {
namespace {

constexpr std::size_t kSizes[] = {1, 63, 64, 65, 127, 128, 129, 257};

TEST(Bitmap, StartsEmpty) {
  const Bitmap none;
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.words(), 0u);
  EXPECT_EQ(none.count(), 0u);
  EXPECT_TRUE(none.all());
  EXPECT_EQ(none.next_zero(0), 0u);
}

TEST(Bitmap, HasAsManyWordsAsItsBitsNeed) {
  EXPECT_EQ(Bitmap(1).words(), 1u);
  EXPECT_EQ(Bitmap(64).words(), 1u);
  EXPECT_EQ(Bitmap(65).words(), 2u);
}

TEST(Bitmap, SetsAndClearsSingleBits) {
  for (const std::size_t size : kSizes) {
    Bitmap bits(size);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_FALSE(bits.test(i));
      bits.set(i);
      ASSERT_TRUE(bits.test(i));
      ASSERT_EQ(bits.count(), 1u);
      ASSERT_EQ(bits.word(i / 64), std::uint64_t{1} << (i % 64));
      bits.clear(i);
      ASSERT_EQ(bits.count(), 0u);
    }
  }
}

TEST(Bitmap, TestAndSetTellsWhetherTheBitWasSet) {
  Bitmap bits(129);
  for (const std::size_t i : {0, 63, 64, 127, 128}) {
    EXPECT_FALSE(bits.test_and_set(i));
    EXPECT_TRUE(bits.test_and_set(i));
    EXPECT_TRUE(bits.test(i));
  }
  EXPECT_EQ(bits.count(), 5u);
}

TEST(Bitmap, IsCompleteOnlyWithEveryBit) {
  for (const std::size_t size : kSizes) {
    Bitmap bits(size);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_FALSE(bits.all()) << size;
      bits.set(i);
    }
    ASSERT_TRUE(bits.all()) << size;
    ASSERT_EQ(bits.next_zero(0), size);
    for (std::size_t hole = 0; hole < size; ++hole) {
      bits.clear(hole);
      ASSERT_FALSE(bits.all());
      ASSERT_EQ(bits.next_zero(0), hole);
      ASSERT_EQ(bits.next_zero(hole), hole);
      ASSERT_EQ(bits.next_zero(hole + 1), size);
      bits.set(hole);
    }
  }
}

TEST(Bitmap, NextZeroBeyondTheEndIsTheSize) {
  const Bitmap bits(65);
  EXPECT_EQ(bits.next_zero(64), 64u);
  EXPECT_EQ(bits.next_zero(65), 65u);
  EXPECT_EQ(bits.next_zero(1000), 65u);
}

TEST(Bitmap, ClearEmptiesAllWordsAndKeepsTheSize) {
  Bitmap bits(130);
  for (std::size_t i = 0; i < 130; i += 3) bits.set(i);
  bits.clear();
  EXPECT_EQ(bits.size(), 130u);
  EXPECT_EQ(bits.count(), 0u);
}

TEST(Bitmap, ResizeForgetsEverything) {
  Bitmap bits(130);
  for (std::size_t i = 0; i < 130; ++i) bits.set(i);
  bits.resize(70);
  EXPECT_EQ(bits.count(), 0u);
  bits.resize(200);
  EXPECT_EQ(bits.count(), 0u);
  EXPECT_EQ(bits.size(), 200u);
}

TEST(Bitmap, ResizeToASizeHadBeforeKeepsItsMemory) {
  Bitmap bits(1000);
  const std::uint64_t* before = bits.span().data();
  bits.resize(10);
  bits.resize(1000);
  EXPECT_EQ(bits.span().data(), before);
}

}  // namespace
}  // namespace leeway
