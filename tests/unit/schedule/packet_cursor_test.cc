#include "schedule/packet_cursor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace leeway::schedule {
namespace {

constexpr std::uint32_t kPerPacket = 32;
PacketGrid grid_of(std::uint32_t packets, std::size_t element_bytes = 64) {
  return PacketGrid(std::size_t{packets} * kPerPacket, kPerPacket, element_bytes);
}

std::vector<std::uint32_t> walk(PacketCursor cursor) {
  std::vector<std::uint32_t> order;
  while (const auto index = cursor.next()) order.push_back(index->value);
  return order;
}

std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<std::uint32_t> upto(std::uint32_t n) {
  std::vector<std::uint32_t> values(n);
  for (std::uint32_t i = 0; i < n; ++i) values[i] = i;
  return values;
}

TEST(PacketCursorOrder, IsAPermutationForEverySizeAndChunking) {
  // These sizes make chunks of 64, 32, 8 and 1 packets.
  for (const std::size_t element_bytes : {64, 128, 512, 4096}) {
    for (std::uint32_t packets = 0; packets <= 200; ++packets) {
      const PacketCursor cursor(grid_of(packets, element_bytes), {packets * 31 + 7, packets},
                                nullptr);
      ASSERT_EQ(sorted(walk(cursor)), upto(packets)) << "element of " << element_bytes;
    }
  }
  for (const std::uint32_t packets : {1009u, 4096u, 65537u}) {
    EXPECT_EQ(sorted(walk(PacketCursor(grid_of(packets), {3, packets}, nullptr))), upto(packets));
  }
}

TEST(PacketCursorOrder, DependsOnItsKeysAlone) {
  const PacketGrid grid = grid_of(300);
  const auto order = walk(PacketCursor(grid, {1, 2}, nullptr));
  EXPECT_EQ(walk(PacketCursor(grid, {1, 2}, nullptr)), order);
  EXPECT_NE(walk(PacketCursor(grid, {1, 3}, nullptr)), order);
  EXPECT_NE(walk(PacketCursor(grid, {2, 2}, nullptr)), order);
}

// Receivers compute packets from places, to ask for missing packets that left before packets that
// have come (protocol/chunk_watch.h).
TEST(ChunkOrderOfPackets, PlaceAndPacketAreEachOthersInverse) {
  for (const std::uint64_t key : {PacketCursor::kInOrder, std::uint64_t{1}, std::uint64_t{77}}) {
    for (std::uint32_t size = 1; size <= 64; ++size) {
      const ChunkOrder order(key, {size % 5}, size);
      for (std::uint32_t place = 0; place < size; ++place)
        EXPECT_EQ(order.place_of(order.packet_at(place)), place) << size;
    }
  }
}

TEST(PacketCursorOrder, StopsAtAChunkThatIsNotReadyAndKeepsItsOrder) {
  const PacketGrid grid = grid_of(300);
  const auto order = walk(PacketCursor(grid, {1, 2}, nullptr));
  Bitmap ready(grid.chunks());
  PacketCursor cursor(grid, {1, 2}, nullptr, &ready);
  std::vector<std::uint32_t> walked;
  const auto walk_on = [&] {
    while (const auto index = cursor.next()) walked.push_back(index->value);
  };
  for (std::uint32_t chunk = grid.chunks(); chunk-- > 0;) {
    ready.set(chunk);
    walk_on();
    for (const std::uint32_t index : walked) EXPECT_TRUE(ready.test(grid.chunk_of({index}).value));
    EXPECT_TRUE(std::equal(walked.begin(), walked.end(), order.begin()));
    EXPECT_EQ(cursor.available(), false);
  }
  EXPECT_EQ(walked, order);
  EXPECT_TRUE(cursor.exhausted());
}

TEST(PacketCursorOrder, WithoutKeysPacketsGoByRisingIndex) {
  const PacketGrid grid = grid_of(1000);
  EXPECT_EQ(walk(PacketCursor(grid, {}, nullptr)), upto(1000));
  EXPECT_EQ(PacketCursor::start_of(grid, PacketCursor::kInOrder), PacketIndex{0});
}

TEST(PacketCursorOrder, SendersWithOneRotationWalkTheChunksTogether) {
  const PacketGrid grid = grid_of(1000);
  const auto one = walk(PacketCursor(grid, {5, 10}, nullptr));
  const auto other = walk(PacketCursor(grid, {5, 11}, nullptr));
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_EQ(grid.chunk_of({one[i]}), grid.chunk_of({other[i]}));
  EXPECT_EQ(PacketCursor::start_of(grid, 5), PacketCursor::start_of(grid, 5));
  EXPECT_EQ(grid.chunk_of({one[0]}), grid.chunk_of(PacketCursor::start_of(grid, 5)));
}

TEST(PacketCursorOrder, PositionCountsWhatWasHandedOut) {
  PacketCursor cursor(grid_of(5), {1, 1}, nullptr);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(cursor.position(), PacketPosition{i});
    EXPECT_FALSE(cursor.exhausted());
    const auto ahead = cursor.peek();
    EXPECT_EQ(cursor.next(), ahead);
  }
  EXPECT_TRUE(cursor.exhausted());
  EXPECT_EQ(cursor.next(), std::nullopt);
  EXPECT_EQ(cursor.peek(), std::nullopt);
}

// Over random keys, every one of n packets is equally often at every place, about m = kDraws/n
// times. The counts of one packet are multinomial, so their chi-square has mean n - 1 and standard
// deviation sqrt(2 (n - 1)). Each of the n chi-squares must be below the mean plus 6 deviations.
TEST(PacketCursorOrder, EveryPacketIsEquallyOftenAtEveryPlace) {
  for (const auto& [packets, element_bytes] :
       {std::pair{7u, 64}, {65u, 64}, {100u, 256}, {97u, 4096}, {130u, 64}}) {
    constexpr std::uint32_t kDraws = 40000;
    std::vector<std::uint32_t> counts(packets * packets, 0);
    for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
      const auto order = walk(
          PacketCursor(grid_of(packets, element_bytes), {draw * 2654435761u, draw + 17}, nullptr));
      for (std::uint32_t place = 0; place < packets; ++place)
        ++counts[order[place] * packets + place];
    }
    const double mean = static_cast<double>(kDraws) / packets;
    for (std::uint32_t packet = 0; packet < packets; ++packet) {
      double chi_square = 0;
      for (std::uint32_t place = 0; place < packets; ++place) {
        const double gap = counts[packet * packets + place] - mean;
        chi_square += gap * gap / mean;
      }
      EXPECT_LT(chi_square, packets - 1 + 6 * std::sqrt(2.0 * (packets - 1)))
          << "packet " << packet << " of " << packets << ", elements of " << element_bytes;
    }
  }
}

TEST(PacketCursorStream, FollowsTheQueueChunkByChunk) {
  const PacketGrid grid = grid_of(150);  // chunks of 64, 64 and 22
  ChunkQueue queue;
  queue.reset(grid.chunks());
  PacketCursor cursor(grid, {1, 2}, &queue);
  EXPECT_FALSE(cursor.available());
  EXPECT_EQ(cursor.next(), std::nullopt);
  std::vector<std::uint32_t> all;
  for (const std::uint32_t chunk : {2u, 0u, 1u}) {
    queue.push({chunk});
    EXPECT_TRUE(cursor.available());
    std::vector<std::uint32_t> part;
    while (const auto index = cursor.next()) part.push_back(index->value);
    EXPECT_EQ(part.size(), grid.chunk_size({chunk}));
    for (const std::uint32_t index : part) EXPECT_EQ(grid.chunk_of({index}), ChunkIndex{chunk});
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(cursor.exhausted());
  EXPECT_EQ(sorted(all), upto(150));
}

TEST(PacketCursorStream, AChunkThatComesInTheMiddleOfAnotherWaitsItsTurn) {
  const PacketGrid grid = grid_of(128);
  ChunkQueue queue;
  queue.reset(grid.chunks());
  PacketCursor cursor(grid, {1, 2}, &queue);
  queue.push({1});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(grid.chunk_of(*cursor.next()), ChunkIndex{1});
  queue.push({0});
  for (int i = 10; i < 64; ++i) EXPECT_EQ(grid.chunk_of(*cursor.next()), ChunkIndex{1});
  EXPECT_EQ(grid.chunk_of(*cursor.next()), ChunkIndex{0});
}

}  // namespace
}  // namespace leeway::schedule
