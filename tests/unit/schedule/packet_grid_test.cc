#include "schedule/packet_grid.h"

#include <gtest/gtest.h>

namespace leeway::schedule {
namespace {

TEST(PacketGrid, PacketsCoverTheShardAndOnlyTheLastIsShort) {
  for (const std::size_t elements : {1, 351, 352, 353, 100000}) {
    const PacketGrid grid(elements, 352, 4);
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < grid.packets(); ++i) {
      EXPECT_EQ(grid.packet_offset({i}), next);
      if (i + 1 < grid.packets()) {
        EXPECT_EQ(grid.packet_elements({i}), 352u);
      }
      EXPECT_GT(grid.packet_elements({i}), 0u);
      next += grid.packet_elements({i});
    }
    EXPECT_EQ(next, elements);
  }
}

TEST(PacketGrid, ChunksCoverThePacketsAndOnlyTheLastIsShort) {
  for (const std::size_t packets : {1, 63, 64, 65, 1000}) {
    const PacketGrid grid(packets * 32, 32, 4);
    std::uint32_t next = 0;
    for (std::uint32_t chunk = 0; chunk < grid.chunks(); ++chunk) {
      EXPECT_EQ(grid.chunk_begin({chunk}), PacketIndex{next});
      for (std::uint32_t i = next; i < next + grid.chunk_size({chunk}); ++i)
        EXPECT_EQ(grid.chunk_of({i}), ChunkIndex{chunk});
      next += grid.chunk_size({chunk});
    }
    EXPECT_EQ(next, packets);
  }
}

TEST(PacketGrid, ChunksFitTheCacheAndAWordOfTheLedger) {
  for (const std::uint32_t per_packet : {32u, 352u, 2272u, 100000u}) {
    for (const std::size_t element : {1, 2, 4, 8}) {
      const PacketGrid grid(10'000'000, per_packet, element);
      EXPECT_LE(grid.chunk_packets(), limits::kChunkPacketsMax);
      EXPECT_TRUE(std::has_single_bit(grid.chunk_packets()));
      if (grid.chunk_packets() > 1) {
        EXPECT_LE(grid.chunk_packets() * per_packet * element, PacketGrid::kChunkBytes);
      }
    }
  }
}

TEST(PacketGrid, AnEmptyShardHasNothing) {
  EXPECT_EQ(PacketGrid(0, 352, 4).packets(), 0u);
  EXPECT_EQ(PacketGrid(0, 352, 4).chunks(), 0u);
  EXPECT_EQ(PacketGrid().packets(), 0u);
}

}  // namespace
}  // namespace leeway::schedule
