#include "network/payload_pool.h"

#include <gtest/gtest.h>

#include <vector>

#include "network/packet.h"

namespace leeway::sim {
namespace {

std::vector<std::byte> bytes_of(std::size_t count, int value) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

bool equals(ByteSpan a, const std::vector<std::byte>& b) {
  return std::vector<std::byte>(a.begin(), a.end()) == b;
}

TEST(PayloadPool, KeepsACopyOfEachDatagram) {
  PayloadPool pool(100);
  std::vector<std::uint32_t> payloads;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> datagram = bytes_of(static_cast<std::size_t>(i % 101), i);
    payloads.push_back(pool.put(datagram));
    datagram.assign(datagram.size(), std::byte{0xff});
  }
  EXPECT_EQ(pool.held(), 200u);
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(equals(pool.get(payloads[static_cast<std::size_t>(i)]),
                       bytes_of(static_cast<std::size_t>(i % 101), i)));
  }
}

TEST(PayloadPool, ADatagramStaysWhereItIsWhileItIsHeld) {
  PayloadPool pool(64);
  const std::uint32_t first = pool.put(bytes_of(64, 7));
  const ByteSpan span = pool.get(first);
  for (int i = 0; i < 1000; ++i) pool.put(bytes_of(64, 9));
  EXPECT_EQ(pool.get(first).data(), span.data());
  EXPECT_TRUE(equals(span, bytes_of(64, 7)));
}

TEST(PayloadPool, TheLastHolderGivesThePlaceBack) {
  PayloadPool pool(10);
  const std::uint32_t payload = pool.put(bytes_of(10, 1));
  pool.hold(payload);
  pool.release(payload);
  EXPECT_EQ(pool.held(), 1u);
  EXPECT_TRUE(equals(pool.get(payload), bytes_of(10, 1)));
  pool.release(payload);
  EXPECT_EQ(pool.held(), 0u);
  EXPECT_EQ(pool.put(bytes_of(3, 2)), payload);  // used again
  EXPECT_EQ(pool.get(payload).size(), 3u);
}

TEST(PayloadPool, NoPayloadMeansNothing) {
  PayloadPool pool(0);
  pool.hold(kNoPayload);
  pool.release(kNoPayload);
  EXPECT_TRUE(pool.get(kNoPayload).empty());
  EXPECT_EQ(pool.held(), 0u);
}

TEST(PayloadPoolDeathTest, RefusesWhatIsTooLongAndWhatIsNotHeld) {
  PayloadPool pool(10);
  EXPECT_DEATH(pool.put(bytes_of(11, 1)), "contract broken");
  const std::uint32_t payload = pool.put(bytes_of(10, 1));
  pool.release(payload);
  EXPECT_DEATH(pool.release(payload), "contract broken");
  EXPECT_DEATH(pool.get(payload), "contract broken");
}

}  // namespace
}  // namespace leeway::sim
