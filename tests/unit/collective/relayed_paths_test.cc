#include "collective/relayed_paths.h"

#include <gtest/gtest.h>

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;

// Slot 0 relays to slots 1 and 2, a megabyte a second. Slot 3 has a path of its own.
class RelayedPathsOfTwo : public ::testing::Test {
 protected:
  RelayedPathsOfTwo() {
    paths.measure({.most = 1472, .around = 24});
    for (const Rank slot : {0, 1, 2, 3}) paths.meet(slot);
    relayed.lead(1, 0, 76);
    relayed.lead(2, 0, 76);
    relayed.on_share(now, 0, 1'000'000);
  }
  std::vector<Rank> opened_at(Instant at) {
    std::vector<Rank> opened;
    relayed.on_wake(at, [&](Rank slot) { opened.push_back(slot); });
    return opened;
  }

  Instant now{1'000'000'000};
  Paths paths;
  RelayedPaths relayed{paths};
};

TEST_F(RelayedPathsOfTwo, AreHeldTogetherForAsLongAsTheirShareLasts) {
  relayed.on_train(now, 1, 9'000, 10);  // and 1,000 bytes around them: 10 ms, less 5 to catch up
  EXPECT_TRUE(paths[1].held());
  EXPECT_TRUE(paths[2].held());
  EXPECT_FALSE(paths[3].held());
  EXPECT_EQ(relayed.wake_at(), now + 5ms);
  EXPECT_TRUE(opened_at(now + 4ms).empty());
  EXPECT_TRUE(paths[1].held());
  EXPECT_EQ(opened_at(now + 5ms), (std::vector<Rank>{1, 2}));
  EXPECT_FALSE(paths[1].held());
  EXPECT_FALSE(paths[2].held());
  EXPECT_EQ(relayed.wake_at(), Instant::infinite_future());
}

TEST_F(RelayedPathsOfTwo, OtherPathsAreNotCharged) {
  relayed.on_train(now, 3, 1'000'000, 700);
  relayed.on_train(now, 0, 1'000'000, 700);
  for (const Rank slot : {0, 1, 2, 3}) EXPECT_FALSE(paths[slot].held()) << slot;
}

TEST_F(RelayedPathsOfTwo, APathThatLeadsElsewhereIsFree) {
  relayed.on_train(now, 1, 1'000'000, 700);
  EXPECT_TRUE(relayed.lead(1, kNoRank, 0)) << "it was held";
  EXPECT_FALSE(paths[1].held());
  EXPECT_TRUE(paths[2].held());
  EXPECT_FALSE(relayed.lead(1, kNoRank, 0));
  EXPECT_EQ(opened_at(now + 10s), (std::vector<Rank>{2})) << "the relay has said nothing more";
}

}  // namespace
}  // namespace leeway::collective
