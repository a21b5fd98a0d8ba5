#include "protocol/watched_tags.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

class WatchedTagsTest : public ::testing::Test {
 protected:
  std::vector<std::uint32_t> heard() {
    std::vector<std::uint32_t> tags;
    tags_.take_heard(tags);
    return tags;
  }

  RoundTable rounds_{4};
  WatchedTags tags_{4, rounds_};
};

TEST_F(WatchedTagsTest, NotesNoTagThatNobodyWaitsFor) {
  tags_.note(1, 5, 0);
  EXPECT_TRUE(heard().empty());
  EXPECT_EQ(rounds_.messages(1), nullptr) << "memory for a made-up tag";
  tags_.watch(5);
  tags_.note(1, 5, 0);
  EXPECT_EQ(heard(), std::vector<std::uint32_t>{5});
  EXPECT_TRUE(heard().empty());
  tags_.forget(5);
  EXPECT_FALSE(tags_.any());
  tags_.note(1, 5, 1);
  EXPECT_TRUE(heard().empty());
}

TEST_F(WatchedTagsTest, SendersTakeTurns) {
  tags_.watch(5);
  EXPECT_EQ(tags_.sender_of(5), std::nullopt);
  tags_.note(1, 5, 0);
  tags_.note(3, 5, 0);
  EXPECT_EQ(tags_.sender_of(5), Rank{1});
  EXPECT_EQ(tags_.sender_of(5), Rank{3});
  EXPECT_EQ(tags_.sender_of(5), Rank{1});
}

TEST_F(WatchedTagsTest, AMessageTooFarAheadIsNotBelieved) {
  tags_.watch(5);
  tags_.note(1, 5, limits::kMessagesHeardMax);
  EXPECT_TRUE(heard().empty());
  tags_.note(1, 5, limits::kMessagesHeardMax - 1);
  EXPECT_FALSE(heard().empty());
}

}  // namespace
}  // namespace leeway::protocol
