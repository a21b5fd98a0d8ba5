#include "seal/relay_shares.h"

#include <gtest/gtest.h>

namespace leeway::seal {
namespace {

TEST(RelayShares, ARelaysWordIsToldOnce) {
  RelayShares shares;
  shares.on_sent(3, 100);
  EXPECT_FALSE(shares.poll());
  shares.on_message(3, {.refused = 40, .bytes_per_second = 500'000});
  shares.on_message(3, {.refused = 41, .bytes_per_second = 400'000});
  const auto change = shares.poll();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->relay, Rank{3});
  EXPECT_EQ(change->bytes_per_second, 400'000u);
  EXPECT_FALSE(shares.poll());
  EXPECT_EQ(shares.shares()[3].sent, 100u);
  EXPECT_EQ(shares.shares()[3].refused, 41u);
  EXPECT_EQ(shares.refused(), 41u);
}

TEST(RelayShares, EachRelayHasItsOwn) {
  RelayShares shares;
  shares.on_sent(0, 10);
  shares.on_sent(2, 10);
  shares.on_message(0, {.refused = 1, .bytes_per_second = 100'000});
  shares.on_message(2, {.refused = 2, .bytes_per_second = 200'000});
  EXPECT_EQ(shares.refused(), 3u);
  EXPECT_TRUE(shares.poll());
  EXPECT_TRUE(shares.poll());
  EXPECT_FALSE(shares.poll());
}

// The test makes three messages of a relay that must be refused: one before any datagram went
// through the relay, one in which the relay claims to have refused more datagrams than were sent to
// it, and one that is older than a message before it.
TEST(RelayShares, WhatCannotBeTrueIsRefusedAndCounted) {
  RelayShares shares;
  shares.on_message(1, {.refused = 0, .bytes_per_second = 1});
  shares.on_sent(2, 10);
  shares.on_message(1, {.refused = 0, .bytes_per_second = 1});
  shares.on_message(2, {.refused = 11, .bytes_per_second = 1});
  EXPECT_EQ(shares.words_refused(), 3u);
  EXPECT_FALSE(shares.poll());
  shares.on_message(2, {.refused = 5, .bytes_per_second = 100'000});
  shares.on_message(2, {.refused = 4, .bytes_per_second = 50'000});
  EXPECT_EQ(shares.words_refused(), 4u);
  EXPECT_EQ(shares.poll()->bytes_per_second, 100'000u);
  EXPECT_EQ(shares.refused(), 5u);
}

TEST(RelayShares, NoWordStopsAllThatGoesThroughARelay) {
  RelayShares shares;
  shares.on_sent(0, 1);
  shares.on_message(0, {.refused = 1, .bytes_per_second = 0});
  EXPECT_EQ(shares.poll()->bytes_per_second, RelayShares::kLeast);
}

TEST(RelayShares, RefusalsAreCountedBeyond32Bits) {
  RelayShares shares;
  shares.on_sent(0, std::uint64_t{3} << 32);
  std::uint32_t told = 0;
  for (int i = 0; i < 4; ++i)
    shares.on_message(0, {.refused = told += 0x80000000, .bytes_per_second = 1'000'000});
  EXPECT_EQ(shares.refused(), std::uint64_t{2} << 32);
}

}  // namespace
}  // namespace leeway::seal
