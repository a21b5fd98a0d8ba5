#include "collective/packet_progress.h"

#include <gtest/gtest.h>

namespace leeway::collective {
namespace {

// Ten packets of 32 KiB, in chunks of four, each from two other ranks.
class ProgressOfTenPackets : public ::testing::Test {
 protected:
  ProgressOfTenPackets() {
    progress.reset(grid, 2);
    done.reset(grid.chunks());
  }

  schedule::PacketGrid grid{10 * 8'192, 8'192, 4};
  PacketProgress progress;
  schedule::ChunkQueue done;
};

TEST_F(ProgressOfTenPackets, APacketWaitsForEachContribution) {
  ASSERT_EQ(grid.chunks(), 3u);
  EXPECT_FALSE(progress.arrive({3}));
  EXPECT_FALSE(progress.arrive({4}));
  EXPECT_TRUE(progress.arrive({3}));
  EXPECT_FALSE(progress.is_reduced(PacketIndex{3})) << "nobody has summed it";
}

TEST_F(ProgressOfTenPackets, AChunkIsDoneWithItsLastPacket) {
  for (const std::uint32_t packet : {9u, 0u, 1u, 2u}) progress.reduce({packet}, done);
  EXPECT_EQ(done.size(), 0u);
  progress.reduce({8}, done);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0], ChunkIndex{2}) << "the short last one";
  EXPECT_FALSE(progress.is_reduced(ChunkIndex{0}));
  progress.reduce({3}, done);
  EXPECT_TRUE(progress.is_reduced(ChunkIndex{0}));
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1], ChunkIndex{0});
}

TEST_F(ProgressOfTenPackets, AResetForgetsAll) {
  progress.reduce({0}, done);
  EXPECT_FALSE(progress.arrive({1}));
  progress.reset(grid, 1);
  EXPECT_FALSE(progress.is_reduced(PacketIndex{0}));
  EXPECT_TRUE(progress.arrive({1}));
}

}  // namespace
}  // namespace leeway::collective
