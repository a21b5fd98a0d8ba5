#include "engine/trace_hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

namespace leeway::sim {
namespace {

// If this fails, no recorded trace hash is valid any more.
TEST(TraceHash, GivesTheGoldenValues) {
  TraceHash hash;
  EXPECT_EQ(hash.value(), 0u);
  hash.add({1'000'000}, 3, 7);
  EXPECT_EQ(hash.value(), 10'836'808'840'285'138'069u);
  hash.add({1'000'001}, 4, 8, std::uint64_t{0x0123456789abcdef}, -1);
  EXPECT_EQ(hash.value(), 10'472'298'533'634'550'007u);
}

TEST(TraceHash, DependsOnEveryPartOfARecord) {
  const auto one = [](Instant time, std::uint32_t kind, std::uint32_t entity, auto... words) {
    TraceHash hash;
    hash.add(time, kind, entity, words...);
    return hash.value();
  };
  const std::set<std::uint64_t> values = {
      one({1}, 2, 3, 4, 5), one({9}, 2, 3, 4, 5), one({1}, 9, 3, 4, 5),   one({1}, 2, 9, 4, 5),
      one({1}, 2, 3, 9, 5), one({1}, 2, 3, 4, 9), one({1}, 2, 3, 5, 4),   one({1}, 3, 2, 4, 5),
      one({1}, 2, 3, 4),    one({1}, 2, 3),       one({1}, 2, 3, 4, 5, 0)};
  EXPECT_EQ(values.size(), 11u);
}

TEST(TraceHash, DependsOnTheOrderOfRecords) {
  TraceHash a;
  a.add({1}, 0, 0, 5);
  a.add({1}, 0, 1, 6);
  TraceHash b;
  b.add({1}, 0, 1, 6);
  b.add({1}, 0, 0, 5);
  EXPECT_NE(a.value(), b.value());
}

// Both hashes get the same words, 1 to 6, divided into records differently.
TEST(TraceHash, DependsOnWhereARecordEnds) {
  TraceHash a;
  a.add({1}, 0, 2, 3, 4);
  a.add({5}, 0, 6);
  TraceHash b;
  b.add({1}, 0, 2, 3);
  b.add({4}, 0, 5, 6);
  EXPECT_NE(a.value(), b.value());
  EXPECT_EQ(a.records(), 2u);
}

TEST(TraceHash, FlipsHalfTheBitsWhenOneBitChanges) {
  constexpr int kTrials = 4096;
  double flipped = 0;
  for (int i = 0; i < kTrials; ++i) {
    TraceHash a;
    a.add({i}, 1, 1, std::uint64_t{0});
    TraceHash b;
    b.add({i}, 1, 1, std::uint64_t{1} << i % 64);
    flipped += std::popcount(a.value() ^ b.value());
  }
  // Each of a trial's 64 bits flips with probability 1/2. The tolerance is five standard errors.
  EXPECT_NEAR(flipped, 32.0 * kTrials, 5 * std::sqrt(16.0 * kTrials));
}

TEST(TraceHashAddRun, DependsOnEveryRunAndOnTheirOrder) {
  TraceHash first;
  first.add({1}, 2, 3);
  TraceHash second;
  second.add({1}, 2, 4);
  const auto both = [](const TraceHash& a, const TraceHash& b) {
    TraceHash sweep;
    sweep.add_run(a);
    sweep.add_run(b);
    return sweep.value();
  };
  const std::set<std::uint64_t> values = {both(first, second), both(second, first),
                                          both(first, first), both(second, second),
                                          both(first, TraceHash())};
  EXPECT_EQ(values.size(), 5u);
  EXPECT_EQ(both(first, second), both(first, second));
}

}  // namespace
}  // namespace leeway::sim
