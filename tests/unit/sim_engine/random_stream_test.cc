#include "engine/random_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace leeway::sim {
namespace {

// Returns the sum of (observed - expected)^2 / expected over equally likely cells.
double chi_squared(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// Chi-squared with k degrees of freedom has mean k and variance 2k. The limit is four sigmas above.
double chi_squared_limit(double degrees) {
  return degrees + 4 * std::sqrt(2 * degrees);
}

// If this fails, no recorded seed or trace hash is valid any more.
TEST(RandomStream, GivesTheGoldenDraws) {
  RandomStream stream(0x0123456789abcdef, 0xfedcba9876543210, Purpose::delay);
  EXPECT_EQ(stream.u32(), 1'337'773'017u);
  EXPECT_EQ(stream.u64(), 9'192'716'974'566'547'098u);
  EXPECT_EQ(stream.u64(), 9'121'762'996'100'956'318u);  // crosses into the second block
  EXPECT_EQ(stream.below(1000), 207u);
  EXPECT_EQ(stream.below(std::uint64_t{1} << 40), 893'237'354'198u);
  EXPECT_EQ(stream.unit53(), 7'369'389'135'146'240 * 0x1p-53);
}

TEST(RandomStream, NumbersItsPurposesForever) {
  EXPECT_EQ(static_cast<int>(Purpose::loss), 0);
  EXPECT_EQ(static_cast<int>(Purpose::corrupt), 4);
  EXPECT_EQ(static_cast<int>(Purpose::workload), 8);
  EXPECT_EQ(static_cast<int>(Purpose::route), 12);
}

TEST(RandomStream, TakesItsWordsFromCountedPhiloxBlocks) {
  RandomStream stream(7, std::uint64_t{5} << 32 | 6, Purpose::queue);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const PhiloxCounter words = philox({block, 0xE0500000, 6, 5}, philox_key(7));
    for (const std::uint32_t word : words) EXPECT_EQ(stream.u32(), word);
  }
}

TEST(RandomStream, DependsOnEachOfItsNames) {
  std::set<std::uint64_t> firsts;
  for (const std::uint64_t seed : {1ull, 2ull, 1ull << 32 | 1}) {
    for (const std::uint64_t entity : {1ull, 2ull, 1ull << 32 | 1}) {
      for (const Purpose purpose : {Purpose::loss, Purpose::delay}) {
        firsts.insert(RandomStream(seed, entity, purpose).u64());
      }
    }
  }
  EXPECT_EQ(firsts.size(), 18u);
}

TEST(RandomStream, IsNotMovedByAnother) {
  RandomStream alone(1, 2, Purpose::loss);
  RandomStream beside(1, 2, Purpose::loss);
  RandomStream other(1, 2, Purpose::delay);
  for (int i = 0; i < 100; ++i) {
    for (std::uint64_t draws = other.below(5); draws > 0; --draws) other.u32();
    ASSERT_EQ(alone.u64(), beside.u64());
  }
}

TEST(RandomStream, OfNeighbouringEntitiesIsUncorrelated) {
  constexpr int kDraws = 1 << 16;
  for (const std::uint64_t entity : {0u, 1u, 1000u}) {
    RandomStream a(3, entity, Purpose::loss);
    RandomStream b(3, entity + 1, Purpose::loss);
    double sum = 0;
    for (int i = 0; i < kDraws; ++i) sum += (a.unit53() - 0.5) * (b.unit53() - 0.5);
    // Each product has variance 1/144.
    EXPECT_NEAR(sum / kDraws, 0, 4 / 12.0 / std::sqrt(kDraws));
  }
}

TEST(RandomStreamBelow, IsUniform) {
  RandomStream stream(4, 0, Purpose::swarm);
  for (const std::uint64_t n : {2ull, 3ull, 10ull, 1000ull}) {
    std::vector<int> counts(n);
    constexpr int kDraws = 200'000;
    for (int i = 0; i < kDraws; ++i) ++counts.at(stream.below(n));
    EXPECT_LT(chi_squared(counts, kDraws / static_cast<double>(n)),
              chi_squared_limit(static_cast<double>(n - 1)))
        << n;
  }
}

// If no draws were refused, a bound of 3/4 of the range would make every third value twice as
// frequent.
TEST(RandomStreamBelow, HasNoBiasForBoundsNearTheRange) {
  RandomStream stream(5, 0, Purpose::swarm);
  for (const std::uint64_t n : {std::uint64_t{3} << 30, std::uint64_t{3} << 62}) {
    std::vector<int> counts(3);
    constexpr int kDraws = 60'000;
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t draw = stream.below(n);
      ASSERT_LT(draw, n);
      ++counts[draw % 3];
    }
    EXPECT_LT(chi_squared(counts, kDraws / 3.0), chi_squared_limit(2)) << n;
  }
}

TEST(RandomStreamBelow, HandlesTheEndsOfItsRange) {
  RandomStream stream(6, 0, Purpose::swarm);
  EXPECT_EQ(stream.below(1), 0u);
  RandomStream words(6, 0, Purpose::swarm);
  words.u32();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(stream.below(std::uint64_t{1} << 32), words.u32());
  for (int i = 0; i < 10; ++i) EXPECT_LT(stream.below(UINT64_MAX), UINT64_MAX);
}

TEST(RandomStreamBelowDeathTest, RefusesAnEmptyRange) {
  RandomStream stream(6, 0, Purpose::swarm);
  EXPECT_DEATH(stream.below(0), "contract broken");
}

TEST(RandomStreamUnit53, IsUniformInTheHalfOpenInterval) {
  RandomStream stream(7, 0, Purpose::swarm);
  std::vector<int> counts(64);
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(static_cast<std::size_t>(stream.unit53() * 64));
  EXPECT_LT(chi_squared(counts, kDraws / 64.0), chi_squared_limit(63));
}

TEST(RandomStreamBernoulli, SucceedsAtItsRate) {
  constexpr int kDraws = 200'000;
  for (const double p : {0.001, 0.1, 0.5, 0.99}) {
    RandomStream stream(8, 0, Purpose::loss);
    int successes = 0;
    for (int i = 0; i < kDraws; ++i) successes += stream.bernoulli(Probability::of(p));
    EXPECT_NEAR(successes, kDraws * p, 4 * std::sqrt(kDraws * p * (1 - p))) << p;
  }
}

TEST(RandomStreamBernoulli, IsCertainAtZeroAndOneAndTakesTwoWordsForEveryRate) {
  RandomStream stream(9, 0, Purpose::loss);
  RandomStream words(9, 0, Purpose::loss);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(stream.bernoulli(Probability::never()));
    ASSERT_TRUE(stream.bernoulli(Probability::always()));
    words.u64();
    words.u64();
  }
  EXPECT_EQ(stream.u32(), words.u32());
}

}  // namespace
}  // namespace leeway::sim
