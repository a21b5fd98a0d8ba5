#include "collective/rotation.h"

#include <gtest/gtest.h>

#include <deque>

namespace leeway::collective {
namespace {

class RotationOfThree : public ::testing::Test {
 protected:
  RotationOfThree() {
    protocol::EndpointConfig config;
    config.self = 0;
    config.size = 2;
    config.window_bytes.assign(2, std::size_t{1} << 20);
    for (std::uint32_t i = 0; i < 3; ++i) {
      config.epoch = i;
      std::vector<protocol::Path*> paths{&self, &peer};
      members.emplace_back(config, std::vector<Rank>{0, 1}, paths, nullptr);
      rotation.make_room(members.size());
    }
  }
  std::vector<Member*> waiting() const {
    return {rotation.waiting().begin(), rotation.waiting().end()};
  }

  protocol::Path self;
  protocol::Path peer;
  std::deque<Member> members;
  Rotation rotation;
};

TEST_F(RotationOfThree, EachIsServedOnceForHoweverManyCalls) {
  for (int i = 0; i < 2; ++i)
    for (Member& member : members) rotation.add(member);
  EXPECT_EQ(waiting(), (std::vector{&members[0], &members[1], &members[2]}));
  for (Member& member : members) EXPECT_EQ(rotation.next(), &member);
  EXPECT_TRUE(rotation.empty());
  EXPECT_EQ(rotation.next(), nullptr);
}

TEST_F(RotationOfThree, OneThatWasServedGoesBehindTheOthers) {
  for (Member& member : members) rotation.add(member);
  std::vector<Member*> served;
  for (int turn = 0; turn < 30; ++turn) {
    served.push_back(rotation.next());
    rotation.add(*served.back());
    EXPECT_EQ(served.back(), &members[turn % 3]) << turn;
  }
  EXPECT_EQ(waiting().size(), 3u);
}

TEST_F(RotationOfThree, OneThatLeavesIsServedNoMore) {
  for (Member& member : members) rotation.add(member);
  EXPECT_EQ(rotation.next(), &members[0]);
  rotation.remove(members[1]);
  EXPECT_EQ(waiting(), std::vector{&members[2]});
  EXPECT_EQ(rotation.next(), &members[2]);
  EXPECT_EQ(rotation.next(), nullptr);
}

}  // namespace
}  // namespace leeway::collective
