// Tests which places parity takes, and when a code can be solved.
#include "protocol/parity_ledger.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

constexpr std::uint32_t kPackets = 2 * limits::kCodePackets + 2;  // three codes, equally long

struct ParityLedgerTest : ::testing::Test {
  ParityLedgerTest() {
    ledger.reset(kPackets);
    for (std::uint32_t i = 0; i < kPackets; ++i) arrived.set(i);
  }
  void lose(std::uint32_t code, std::uint32_t n) {
    arrived.clear(ledger.grid().packet(code, n).value);
  }

  ParityLedger ledger;
  Bitmap arrived{kPackets};
};

TEST_F(ParityLedgerTest, TheFirstMissingPlaceOfTheCodeIsCovered) {
  lose(1, 5);
  lose(1, 9);
  const auto place = ledger.cover({1, 7}, arrived);
  ASSERT_TRUE(place);
  EXPECT_EQ(*place, ledger.grid().packet(1, 5));
  EXPECT_TRUE(ledger.covers(*place));
  EXPECT_EQ(ledger.parity_at(*place), (wire::ParityPlace{1, 7}));
  EXPECT_FALSE(ledger.places(1, arrived).full);
  EXPECT_EQ(*ledger.cover({1, 2}, arrived), ledger.grid().packet(1, 9));
  const ParityLedger::Places places = ledger.places(1, arrived);
  EXPECT_TRUE(places.full);
  EXPECT_EQ(places.covered, 2u);
  EXPECT_EQ(places.count, kPackets / 3);
  EXPECT_EQ(places.rows[5], 7);
  EXPECT_EQ(places.rows[9], 2);
  EXPECT_EQ(places.rows[0], ParityLedger::kPresent);
}

TEST_F(ParityLedgerTest, CodesDoNotMixAndACodeThatIsWholeNeedsNone) {
  lose(0, 3);
  EXPECT_FALSE(ledger.cover({1, 0}, arrived));
  EXPECT_FALSE(ledger.covers_any());
  EXPECT_TRUE(ledger.cover({0, 0}, arrived));
  EXPECT_TRUE(ledger.covers_any());
}

TEST_F(ParityLedgerTest, APlaceIsItsPacketsAgain) {
  lose(2, 0);
  const auto place = ledger.cover({2, 0}, arrived);
  ledger.uncover(*place);
  ledger.uncover(*place);
  EXPECT_FALSE(ledger.covers_any());
  EXPECT_FALSE(ledger.covers(*place));
}

TEST_F(ParityLedgerTest, CopiesAreKnown) {
  EXPECT_TRUE(ledger.is_first(17));
  EXPECT_FALSE(ledger.is_first(17));
  EXPECT_TRUE(ledger.is_first(ledger.grid().parities_max() - 1));
  ledger.reset(kPackets);
  EXPECT_TRUE(ledger.is_first(17));
}

}  // namespace
}  // namespace leeway::protocol
