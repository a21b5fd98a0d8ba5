#include "schedule/shard_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace leeway::schedule {
namespace {

TEST(ShardMapEven, CoversEveryElementOnceInRankOrder) {
  for (const int size : {1, 2, 3, 4, 7, 64, 65, 1024}) {
    for (const std::size_t count : {0, 1, 63, 64, 65, 1000, 4096, 1000003}) {
      const ShardMap map = ShardMap::even(count, size);
      std::size_t next = 0;
      for (Rank rank = 0; rank < size; ++rank) {
        if (map[rank].count > 0) {
          EXPECT_EQ(map[rank].offset, next);
        }
        next += map[rank].count;
      }
      EXPECT_EQ(next, count) << size << " ranks";
      EXPECT_EQ(map.count(), count);
    }
  }
}

TEST(ShardMapEven, BordersFallOnMultiplesOfTheAlignment) {
  for (const int size : {2, 3, 7, 65}) {
    const ShardMap map = ShardMap::even(100003, size);
    for (Rank rank = 0; rank < size; ++rank) {
      if (map[rank].count > 0) {
        EXPECT_EQ(map[rank].offset % ShardMap::kAlign, 0u);
      }
    }
  }
}

TEST(ShardMapEven, ShardsDifferByAtMostTheAlignment) {
  for (const int size : {2, 3, 7, 65}) {
    const ShardMap map = ShardMap::even(123457, size);
    std::size_t smallest = SIZE_MAX, largest = 0;
    for (Rank rank = 0; rank < size; ++rank) {
      const bool last = map[rank].offset + map[rank].count == map.count();
      // The tensor's end may cut the last shard.
      if (!last) smallest = std::min(smallest, map[rank].count);
      largest = std::max(largest, map[rank].count);
    }
    EXPECT_LE(largest - smallest, ShardMap::kAlign);
  }
}

TEST(ShardMapEven, TrailingShardsOfASmallTensorAreEmpty) {
  const ShardMap map = ShardMap::even(100, 4);
  EXPECT_EQ(map[0].count, 64u);
  EXPECT_EQ(map[1].count, 36u);
  EXPECT_EQ(map[2].count, 0u);
  EXPECT_EQ(map[3].count, 0u);
  EXPECT_LE(map[3].offset, 100u) << "an empty shard still points into the tensor";
}

// Required by WIRE 2.9.
TEST(ShardMapFew, CoversEveryElementOnceInTheOrderOfTurns) {
  for (const int size : {1, 2, 3, 4, 7, 64}) {
    for (const std::size_t count : {0, 1, 352, 353, 704, 1000, 4096, 100003}) {
      for (const std::uint32_t turn : {0u, 1u, 5u, 0xFFFFFFFFu}) {
        const ShardMap map = ShardMap::few(count, size, 352, turn);
        const std::size_t owners = std::clamp<std::size_t>((count + 319) / 320, 1, size);
        EXPECT_EQ(map.owners(), owners);
        std::size_t next = 0;
        for (std::size_t place = 0; place < static_cast<std::size_t>(size); ++place) {
          const auto rank = static_cast<Rank>((turn * std::uint64_t{owners} + place) % size);
          if (map[rank].count > 0) {
            EXPECT_EQ(map[rank].offset, next);
          }
          EXPECT_TRUE(place < owners || map[rank].count == 0);
          next += map[rank].count;
        }
        EXPECT_EQ(next, count);
      }
    }
  }
}

TEST(ShardMapFew, EveryShardFitsADatagramUnlessAllRanksOwn) {
  for (std::size_t count = 1; count < 8000; count += 7) {
    const ShardMap map = ShardMap::few(count, 16, 352, 3);
    for (Rank rank = 0; rank < 16; ++rank) {
      EXPECT_TRUE(map[rank].count <= 352 || map.owners() == 16) << count;
    }
  }
}

TEST(ShardMapFew, PacketsShorterThanTheAlignmentAreRoundedUpToIt) {
  EXPECT_EQ(ShardMap::few(128, 16, 57, 0).owners(), 2u);
}

TEST(ShardMapFew, EveryRankOwnsAsOftenAsAnyOther) {
  constexpr int kSize = 5;
  for (const std::size_t count : {100, 600, 900, 1200}) {
    std::array<int, kSize> owned{};
    for (std::uint32_t turn = 0; turn < kSize; ++turn) {
      const ShardMap map = ShardMap::few(count, kSize, 352, turn);
      for (Rank rank = 0; rank < kSize; ++rank) owned[rank] += map[rank].count > 0;
    }
    for (const int times : owned) EXPECT_EQ(times, owned[0]) << count;
  }
}

TEST(ShardMapFew, IsEvenWhereAllRanksOwn) {
  const ShardMap few = ShardMap::few(7 * 352, 7, 352, 11);
  const ShardMap even = ShardMap::even(7 * 352, 7);
  for (Rank rank = 0; rank < 7; ++rank) {
    EXPECT_EQ(few[rank].offset, even[rank].offset);
    EXPECT_EQ(few[rank].count, even[rank].count);
  }
}

TEST(ShardMapBlocks, AreOfEqualLengthWhateverTheirAlignment) {
  const ShardMap map = ShardMap::blocks(17, 5);
  EXPECT_EQ(map.count(), 85u);
  for (Rank rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(map[rank].offset, 17u * rank);
    EXPECT_EQ(map[rank].count, 17u);
  }
}

// Random draws are keyed by position, so shards must not share positions, whatever the caller's
// block size.
TEST(ShardMapPosition, IsAlignedAndNoTwoShardsOverlap) {
  for (const std::size_t block : {1, 17, 63, 64, 65, 1003}) {
    const ShardMap map = ShardMap::blocks(block, 5);
    std::size_t next = 0;
    for (Rank rank = 0; rank < 5; ++rank) {
      EXPECT_EQ(map.position(rank) % ShardMap::kAlign, 0u);
      EXPECT_GE(map.position(rank), next) << block;
      next = map.position(rank) + map[rank].count;
    }
  }
}

TEST(ShardMapPosition, IsTheOffsetWhereBordersAreAligned) {
  const ShardMap map = ShardMap::even(100003, 7);
  for (Rank rank = 0; rank < 7; ++rank) EXPECT_EQ(map.position(rank), map[rank].offset);
}

TEST(ShardMapBlocks, OfNothingAreEmpty) {
  const ShardMap map = ShardMap::blocks(0, 3);
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(map[rank].count, 0u);
}

TEST(ShardMapSingle, GivesEverythingToOneRank) {
  const ShardMap map = ShardMap::single(1000, 2);
  EXPECT_EQ(map[2].offset, 0u);
  EXPECT_EQ(map[2].count, 1000u);
  EXPECT_EQ(map[0].count, 0u);
  EXPECT_EQ(map[3].count, 0u);
}

}  // namespace
}  // namespace leeway::schedule
