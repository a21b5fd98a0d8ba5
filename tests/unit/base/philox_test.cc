#include "base/philox.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

namespace leeway {
namespace {

TEST(Philox, GivesTheKnownAnswers) {
  // The first three vectors are those of Random123's own tests.
  constexpr std::uint32_t kOnes = 0xFFFFFFFF;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(philox({5, 0, 7, 3}, {0x12345678, 0x9abcdef0}),
            (PhiloxCounter{0xa63901ee, 0xb1ed361a, 0x8ee33927, 0xdc7c28f9}));
}

TEST(KeyedHash, IsTheFirstTwoOutputWords) {
  EXPECT_EQ(keyed_hash(0x9abcdef012345678, 5, 0, 7, 3), 0xb1ed361aa63901eeu);
}

TEST(KeyedHash, DependsOnEveryArgument) {
  const std::set<std::uint64_t> draws = {
      keyed_hash(1, 2, 3, 4, 5),         keyed_hash(9, 2, 3, 4, 5), keyed_hash(1, 9, 3, 4, 5),
      keyed_hash(1, 2, 9, 4, 5),         keyed_hash(1, 2, 3, 9, 5), keyed_hash(1, 2, 3, 4, 9),
      keyed_hash(1ull << 32, 2, 3, 4, 5)};
  EXPECT_EQ(draws.size(), 7u);
}

TEST(KeyedHash, FlipsHalfTheBitsWhenOneBitOfTheCounterChanges) {
  constexpr int kDraws = 4096;
  double flipped = 0;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    flipped += std::popcount(keyed_hash(1, i, 0, 0, 0) ^ keyed_hash(1, i, 0, 0, 1));
  }
  // Each of a draw's 64 bits should flip with probability 1/2. The tolerance is 5 standard errors.
  const double mean = 32.0 * kDraws;
  EXPECT_NEAR(flipped, mean, 5 * std::sqrt(mean / 2));
}

TEST(ToUnit, CoversTheHalfOpenUnitInterval) {
  EXPECT_EQ(to_unit(0), 0.0);
  EXPECT_LT(to_unit(~std::uint64_t{0}), 1.0);
  EXPECT_EQ(to_unit(~std::uint64_t{0}), 1.0 - 0x1p-53);
  EXPECT_EQ(to_unit(std::uint64_t{1} << 63), 0.5);
}

TEST(ToUnit, IsUniform) {
  constexpr int kDraws = 1 << 16;
  double sum = 0;
  int below_tenth = 0;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const double u = to_unit(keyed_hash(3, i, 0, 0, 0));
    sum += u;
    below_tenth += u < 0.1;
  }
  // The tolerances are four standard errors: sqrt(1/12/n) of a mean of uniform draws, and sqrt(0.1
  // * 0.9 / n) of the share below 0.1.
  EXPECT_NEAR(sum / kDraws, 0.5, 4 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(static_cast<double>(below_tenth) / kDraws, 0.1, 4 * std::sqrt(0.09 / kDraws));
}

}  // namespace
}  // namespace leeway
