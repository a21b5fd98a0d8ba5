#include <gtest/gtest.h>

#include <deque>

#include "protocol/peer_messages.h"

namespace leeway::protocol {
namespace {

class Listed : public ::testing::Test {
 protected:
  Round& push(std::uint32_t number) {
    rounds_.emplace_back().number = number;
    list_.push(rounds_.back());
    return rounds_.back();
  }

  std::deque<Round> rounds_;
  MessageList list_;
};

TEST_F(Listed, OnesAreFoundByNumberWhateverWasClosedBetween) {
  for (std::uint32_t i = 0; i < 100; ++i) push(i);
  for (std::uint32_t i = 0; i < 100; i += 3) list_.erase(rounds_[i]);
  for (std::uint32_t i = 0; i < 100; ++i)
    EXPECT_EQ(list_.find(i), i % 3 == 0 ? nullptr : &rounds_[i]) << i;
  EXPECT_EQ(list_.find(100), nullptr);
  EXPECT_EQ(list_.size(), 66u);
}

TEST_F(Listed, NumbersMayWrap) {
  for (std::uint32_t i = 0; i < 10; ++i) push(UINT32_MAX - 4 + i);
  EXPECT_EQ(list_.find(UINT32_MAX), &rounds_[4]);
  EXPECT_EQ(list_.find(0), &rounds_[5]);
  EXPECT_EQ(list_.find(5), nullptr);
}

TEST_F(Listed, OnlyTheOldestAreForemost) {
  for (std::uint32_t i = 0; i < 3; ++i) push(i);
  EXPECT_EQ(list_.foremost(), 3u);
  for (std::uint32_t i = 3; i < 50; ++i) push(i);
  EXPECT_EQ(list_.foremost(), std::size_t{limits::kTalkingMessagesMax});
}

TEST_F(Listed, EraseTellsThePlace) {
  for (std::uint32_t i = 0; i < 5; ++i) push(i);
  EXPECT_EQ(list_.erase(rounds_[0]), 0u);
  EXPECT_EQ(list_.erase(rounds_[3]), 2u);
  EXPECT_EQ(list_[2].number, 4u);
}

TEST_F(Listed, AStreamOfThemDoesNotGrowTheList) {
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    Round& round = push(i);
    ASSERT_EQ(list_.find(i), &round);
    if (i % 16 == 15) {
      while (!list_.empty()) list_.erase(list_[0]);
    }
  }
  EXPECT_TRUE(list_.empty());
}

}  // namespace
}  // namespace leeway::protocol
