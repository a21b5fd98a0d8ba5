#include "transport/inproc/byte_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

bool append(ByteRing& ring, Rank from, const Bytes& datagram) {
  const auto room = ring.append(from, datagram.size());
  if (room) std::copy(datagram.begin(), datagram.end(), room->begin());
  return room.has_value();
}

TEST(ByteRingRead, RecordsComeOutInOrderWithTheirSource) {
  ByteRing ring(1024);
  ASSERT_TRUE(append(ring, 3, pattern(100, 1)));
  ASSERT_TRUE(append(ring, 5, pattern(7, 2)));
  const Received first = ring.read().value();
  EXPECT_EQ(first.from, 3);
  EXPECT_EQ(bytes_of(first.bytes), pattern(100, 1));
  const Received second = ring.read().value();
  EXPECT_EQ(second.from, 5);
  EXPECT_EQ(bytes_of(second.bytes), pattern(7, 2));
  EXPECT_FALSE(ring.read().has_value());
}

TEST(ByteRingRead, AnEmptyDatagramIsARecordToo) {
  ByteRing ring(256);
  ASSERT_TRUE(append(ring, 1, {}));
  EXPECT_TRUE(ring.unread());
  EXPECT_EQ(ring.read()->bytes.size(), 0u);
}

TEST(ByteRingAppend, ReadRecordsKeepTheirMemoryUntilReleased) {
  ByteRing ring(2 * ByteRing::record_bytes(100));
  ASSERT_TRUE(append(ring, 1, pattern(100, 1)));
  ASSERT_TRUE(append(ring, 1, pattern(100, 2)));
  const Received lent = ring.read().value();
  EXPECT_FALSE(append(ring, 1, pattern(100, 3)));
  EXPECT_EQ(bytes_of(lent.bytes), pattern(100, 1));
  ring.release_read();
  EXPECT_TRUE(append(ring, 1, pattern(100, 3)));
}

TEST(ByteRingAppend, ARecordLargerThanTheRingNeverFits) {
  ByteRing ring(256);
  EXPECT_FALSE(ring.append(1, 256).has_value());
  EXPECT_TRUE(ring.append(1, 240).has_value());
}

TEST(ByteRingAppend, RandomTrafficAgreesWithAQueue) {
  ByteRing ring(4096);
  std::mt19937 random(11);
  std::deque<Bytes> model;
  std::uint32_t serial = 0;
  std::size_t refused = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2 == 0) {
      const Bytes datagram = pattern(random() % 600, ++serial);
      append(ring, 1, datagram) ? model.push_back(datagram) : void(++refused);
    } else {
      for (unsigned reads = random() % 4; reads > 0 && !model.empty(); --reads) {
        ASSERT_EQ(bytes_of(ring.read().value().bytes), model.front());
        model.pop_front();
      }
      ring.release_read();
    }
    ASSERT_EQ(ring.unread(), !model.empty());
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(serial - refused, 5000u);
}

}  // namespace
}  // namespace leeway::transport
