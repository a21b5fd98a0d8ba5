#include "protocol/leaving.h"

#include <algorithm>

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

using LeavingTest = EndpointParts;

TEST_F(LeavingTest, ServesUntilPeersAreContent) {
  EXPECT_FALSE(leaving_.wake(kNow)) << "it does not leave";
  state_.departure.serve(kNow, state_.slowest_timeout());
  EXPECT_FALSE(leaving_.wake(kNow));
  EXPECT_TRUE(link(1).probe_due) << "peers are asked whether they are content";
  Instant now = kNow;
  while (!leaving_.wake(now) && now < kNow + 60s) now = now + 10ms;
  EXPECT_LT(now, kNow + 60s) << "nobody answers, and it leaves all the same";
}

TEST_F(LeavingTest, HasLeftOnceEachPeerHasAnsweredOrGone) {
  state_.departure.part(kNow, kRanks);
  leaving_.say_goodbye(kNow, /*given_up=*/false);
  EXPECT_EQ(control(), std::vector(3, wire::PacketType::goodbye));
  EXPECT_FALSE(leaving_.left());
  state_.departure.on_answer(1);
  state_.departure.on_answer(2);
  EXPECT_FALSE(leaving_.left());
  link(3).gone = true;
  EXPECT_TRUE(leaving_.left());
}

TEST_F(LeavingTest, RepeatsTheGoodbyeUntilItIsAnswered) {
  for (Rank peer = 1; peer < kRanks; ++peer) link(peer).heard = true;
  state_.departure.part(kNow, kRanks);
  leaving_.say_goodbye(kNow, /*given_up=*/false);
  control();
  state_.departure.on_answer(2);
  for (Rank peer = 1; peer < kRanks; ++peer) leaving_.wake_farewell(kNow + 1s, peer);
  EXPECT_EQ(control(kNow + 1s).size(), 2u);
}

TEST_F(LeavingTest, ADeadPeerIsToldThatItWasGivenUp) {
  link(2).gone = link(2).dead = true;
  state_.departure.part(kNow, kRanks);
  leaving_.say_goodbye(kNow, /*given_up=*/false);
  const auto sent = control();
  EXPECT_EQ(sent.size(), 3u);
  EXPECT_EQ(std::count(sent.begin(), sent.end(), wire::PacketType::given_up), 1);
}

TEST_F(LeavingTest, ThoseThatGaveItUpAreToldOnce) {
  state_.departure.part(kNow, kRanks);
  leaving_.say_goodbye(kNow, /*given_up=*/true);
  EXPECT_EQ(control().size(), 3u);
  for (Instant now = kNow; now < kNow + 20s; now = now + 100ms) {
    for (Rank peer = 1; peer < kRanks; ++peer) leaving_.wake_farewell(now, peer);
  }
  EXPECT_TRUE(control().empty());
  EXPECT_TRUE(leaving_.left());
}

}  // namespace
}  // namespace leeway::protocol
