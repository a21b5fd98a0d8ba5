#include "device/ring.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace leeway::device {
namespace {

constexpr std::size_t kUnit = Ring::kAlignment;

class RingTest : public testing::Test {
 protected:
  // Leases `units` units with the signal of this number.
  std::optional<Ring::Lease> place(Ring& ring, std::size_t units, std::uint32_t number) {
    over_.clear();
    return ring.place(units * kUnit, Signal(&words_, 0, number), over_);
  }
  std::vector<std::uint32_t> over() const {
    std::vector<std::uint32_t> numbers;
    for (const Signal& one : over_) numbers.push_back(one.value());
    return numbers;
  }
  Words words_;
  std::vector<Signal> over_;
};

using Numbers = std::vector<std::uint32_t>;

TEST_F(RingTest, LeasesLieOneBehindTheOther) {
  Ring ring(4 * kUnit);
  EXPECT_EQ(place(ring, 1, 1)->offset, 0U);
  EXPECT_EQ(place(ring, 2, 2)->offset, kUnit);
  EXPECT_TRUE(over_.empty());
}

TEST_F(RingTest, NothingLiesOverWhatIsNotClosed) {
  Ring ring(2 * kUnit);
  const auto first = place(ring, 1, 1);
  const auto second = place(ring, 1, 2);
  EXPECT_FALSE(place(ring, 1, 3).has_value());
  ring.close(*second);
  EXPECT_FALSE(place(ring, 1, 3).has_value());
  ring.close(*first);
  EXPECT_EQ(place(ring, 1, 3)->offset, 0U);
  EXPECT_EQ(over(), (Numbers{1}));
}

// Leases 2 and 3 each take a part of lease 1's memory, so both must wait for lease 1.
TEST_F(RingTest, WhatIsLeftOfALeaseStaysItsOwn) {
  Ring ring(4 * kUnit);
  ring.close(*place(ring, 4, 1));
  ring.close(*place(ring, 1, 2));
  EXPECT_EQ(over(), (Numbers{1}));
  ring.close(*place(ring, 2, 3));
  EXPECT_EQ(over(), (Numbers{1}));
  ring.close(*place(ring, 2, 4));  // one unit is skipped
  EXPECT_EQ(over(), (Numbers{2, 3}));
}

TEST_F(RingTest, LongerThanTheRingHasNoPlace) {
  Ring ring(2 * kUnit);
  EXPECT_FALSE(place(ring, 3, 1).has_value());
  // A lease of 0 bytes also has a place.
  EXPECT_EQ(ring.place(0, Signal(&words_, 0, 1), over_)->offset, 0U);
}

// A lease must wait for the last user of each of its pages. The test takes leases of many lengths.
TEST_F(RingTest, EveryEarlierUserIsWaitedFor) {
  std::mt19937 random(7);
  constexpr std::size_t kUnits = 16;
  Ring ring(kUnits * kUnit);
  std::array<std::uint32_t, kUnits> user{};
  for (std::uint32_t number = 1; number < 5000; ++number) {
    const std::size_t units = 1 + random() % 6;
    const auto lease = place(ring, units, number);
    ASSERT_TRUE(lease.has_value());
    const Numbers waited = over();
    for (std::size_t i = 0; i < units; ++i) {
      std::uint32_t& before = user[lease->offset / kUnit + i];
      if (before != 0) {
        EXPECT_NE(std::find(waited.begin(), waited.end(), before), waited.end());
      }
      before = number;
    }
    ring.close(*lease);
  }
}

}  // namespace
}  // namespace leeway::device
