#include "seal/replay_window.h"

#include <gtest/gtest.h>

#include <memory>

namespace leeway::seal {
namespace {

using Verdict = ReplayWindow::Verdict;
constexpr std::uint64_t kAll = ReplayWindow::kNumbers;

class ReplayWindowTest : public ::testing::Test {
 protected:
  Verdict look(std::uint64_t number) const { return window_->look(number); }
  void commit(std::uint64_t number) { window_->commit(number); }

  std::unique_ptr<ReplayWindow> window_ = std::make_unique<ReplayWindow>();
};

TEST_F(ReplayWindowTest, NumberZeroIsNeverFresh) {
  EXPECT_EQ(look(0), Verdict::too_old);
  EXPECT_EQ(look(1), Verdict::fresh);
}

TEST_F(ReplayWindowTest, LookingChangesNothing) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(look(1'000'000), Verdict::fresh);
  EXPECT_EQ(look(1), Verdict::fresh);
}

TEST_F(ReplayWindowTest, EachNumberIsFreshOnce) {
  for (std::uint64_t number = 1; number <= 3 * kAll; ++number) {
    ASSERT_EQ(look(number), Verdict::fresh) << number;
    commit(number);
    ASSERT_EQ(look(number), Verdict::seen) << number;
  }
}

TEST_F(ReplayWindowTest, OvertakenNumbersAreFreshAsLongAsTheWindowHoldsThem) {
  commit(10 * kAll + 63);  // the last number of its word, so that the window is as long as possible
  const std::uint64_t oldest = 9 * kAll + 64;
  EXPECT_EQ(look(oldest), Verdict::fresh);
  EXPECT_EQ(look(oldest - 1), Verdict::too_old);
  commit(oldest);
  EXPECT_EQ(look(oldest), Verdict::seen);
}

TEST_F(ReplayWindowTest, TheWindowIsNeverShorterThanAllButAWord) {
  for (std::uint64_t largest = 5 * kAll; largest < 5 * kAll + 130; ++largest) {
    commit(largest);
    EXPECT_EQ(look(largest - (kAll - 64)), Verdict::fresh) << largest;
    EXPECT_EQ(look(largest - kAll), Verdict::too_old) << largest;
  }
}

// Numbers that differ by a whole window share a bit. So a number must leave no trace when the
// window has passed it.
TEST_F(ReplayWindowTest, AWindowLaterNothingIsLeftOfANumber) {
  for (std::uint64_t number = 1; number <= kAll; number += 7) commit(number);
  for (std::uint64_t number = kAll + 1; number <= 2 * kAll; ++number) {
    ASSERT_EQ(look(number), Verdict::fresh) << number;
    commit(number);
  }
}

TEST_F(ReplayWindowTest, FarJumpsForgetEverything) {
  for (std::uint64_t number = 1; number < 200; ++number) commit(number);
  for (const std::uint64_t jump :
       {kAll - 2, 2 * kAll, 3 * kAll + 1, 5 * kAll + 17, std::uint64_t{1} << 60}) {
    commit(jump);
    EXPECT_EQ(look(jump), Verdict::seen);
    EXPECT_EQ(look(jump - 1), Verdict::fresh);
    EXPECT_EQ(look(jump + 1), Verdict::fresh);
  }
  EXPECT_EQ(look(199), Verdict::too_old);
}

TEST_F(ReplayWindowTest, TheLastNumbersOfAllAreNumbersLikeOthers) {
  commit(UINT64_MAX);
  EXPECT_EQ(look(UINT64_MAX), Verdict::seen);
  EXPECT_EQ(look(UINT64_MAX - 1), Verdict::fresh);
  EXPECT_EQ(look(1), Verdict::too_old);
}

}  // namespace
}  // namespace leeway::seal
