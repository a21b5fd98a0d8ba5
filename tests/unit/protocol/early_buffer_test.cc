#include "protocol/early_buffer.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

using Bytes = std::vector<std::byte>;
Bytes bytes_of(int value, std::size_t length = 10) {
  return Bytes(length, static_cast<std::byte>(value));
}

std::vector<std::pair<Rank, Bytes>> take(EarlyBuffer& buffer, std::uint32_t key) {
  std::vector<std::pair<Rank, Bytes>> taken;
  buffer.take({.number = key}, [&](Rank from, ByteSpan bytes) {
    taken.emplace_back(from, Bytes(bytes.begin(), bytes.end()));
  });
  return taken;
}

TEST(EarlyBufferTake, GivesEveryDatagramOfTheKeyOnce) {
  EarlyBuffer buffer(3, 4, 100);
  EXPECT_TRUE(buffer.put(0, {7}, 0, bytes_of(1)));
  EXPECT_TRUE(buffer.put(2, {7}, 0, bytes_of(2, 100)));
  EXPECT_TRUE(buffer.put(0, {8}, 0, bytes_of(3)));
  EXPECT_TRUE(buffer.put(0, {7}, 1, bytes_of(4, 1)));
  EXPECT_EQ(buffer.held(), 4u);
  const std::vector<std::pair<Rank, Bytes>> expected = {
      {0, bytes_of(1)}, {0, bytes_of(4, 1)}, {2, bytes_of(2, 100)}};
  EXPECT_EQ(take(buffer, 7), expected);
  EXPECT_TRUE(take(buffer, 7).empty());
  EXPECT_EQ(buffer.held(), 1u);
}

TEST(EarlyBufferPut, OnePeerCannotUseAnothersShare) {
  EarlyBuffer buffer(2, 3, 100);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(buffer.put(0, {1}, i, bytes_of(i)));
  EXPECT_FALSE(buffer.put(0, {1}, 3, bytes_of(9)));
  EXPECT_TRUE(buffer.put(1, {1}, 0, bytes_of(5)));
  take(buffer, 1);
  EXPECT_TRUE(buffer.put(0, {2}, 0, bytes_of(9))) << "slots are free again";
}

TEST(EarlyBufferPut, TheLastCopyTakesThePlaceOfThoseBefore) {
  EarlyBuffer buffer(1, 2, 100);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(buffer.put(0, {1}, 7, bytes_of(i, 10 + i)));
  EXPECT_EQ(buffer.held(), 1u);
  EXPECT_TRUE(buffer.put(0, {2}, 7, bytes_of(9))) << "of another operation";
  const std::vector<std::pair<Rank, Bytes>> expected = {{0, bytes_of(4, 14)}};
  EXPECT_EQ(take(buffer, 1), expected);
  EXPECT_EQ(buffer.held(), 1u);
}

TEST(EarlyBufferPut, RefusesWhatDoesNotFit) {
  EarlyBuffer buffer(2, 3, 100);
  EXPECT_FALSE(buffer.put(0, {1}, 0, bytes_of(1, 101)));
  EXPECT_FALSE(buffer.put(0, {1}, 0, {}));
  EXPECT_FALSE(buffer.put(2, {1}, 0, bytes_of(1))) << "a rank beyond the group";
  EXPECT_EQ(buffer.held(), 0u);
}

}  // namespace
}  // namespace leeway::protocol
