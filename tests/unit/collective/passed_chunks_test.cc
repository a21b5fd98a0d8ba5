#include "collective/passed_chunks.h"

#include <gtest/gtest.h>

#include <set>

namespace leeway::collective {
namespace {

// Rank 1 of three owns 40 packets in ten chunks of four.
class PassedOfTenChunks : public ::testing::Test {
 protected:
  void reset(std::uint64_t key, bool follows = true) {
    chunks.reset(grid, key, 3, 1, follows);
    start = schedule::PacketCursor::start_of(grid, key).value;
    passed.clear();
  }
  void arrive(Rank from, std::uint32_t position) {
    chunks.on_packet(from, {position}, [&](ChunkIndex chunk) { passed.push_back(chunk.value); });
  }

  schedule::PacketGrid grid{40 * 8'192, 8'192, 4};
  PassedChunks chunks;
  std::uint32_t start = 0;
  std::vector<std::uint32_t> passed;
};

TEST_F(PassedOfTenChunks, AChunkIsPassedWhenTheSlowestIsAChunkBeyondIt) {
  for (std::uint64_t key = 1; key < 20; ++key) {
    reset(key);
    const std::uint32_t first_part = 4 - start % 4;
    arrive(0, 39);
    EXPECT_TRUE(passed.empty()) << "rank 2 has sent nothing";
    arrive(2, first_part + 4 + 3);
    EXPECT_TRUE(passed.empty()) << "packets of the chunk may have been overtaken";
    arrive(2, first_part + 4 + 4);
    EXPECT_EQ(passed, std::vector{(start / 4 + 1) % 10}) << "the first whole one, key " << key;
  }
}

TEST_F(PassedOfTenChunks, EachIsToldOnceInOrderOfTheWalk) {
  reset(7);
  for (std::uint32_t position = 0; position < 40; position += 2) {
    arrive(0, position);
    arrive(2, position + 1);
    arrive(0, position / 2);  // an overtaken one
  }
  ASSERT_GE(passed.size(), 7u);
  for (std::size_t i = 0; i < passed.size(); ++i) EXPECT_EQ(passed[i], (start / 4 + 1 + i) % 10);
  EXPECT_EQ(std::set(passed.begin(), passed.end()).count(start / 4), 0u)
      << "its first part came first, and its last part is last";
}

TEST_F(PassedOfTenChunks, NothingIsToldWhereNobodyFollows) {
  reset(7, /*follows=*/false);
  arrive(0, 39);
  arrive(2, 39);
  EXPECT_TRUE(passed.empty());
}

}  // namespace
}  // namespace leeway::collective
