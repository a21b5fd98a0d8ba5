#include "protocol/endpoint_state.h"

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

using EndpointStateTest = EndpointParts;

TEST_F(EndpointStateTest, APathThatIsDeadIsDeadToLaterCommunicators) {
  std::array<Path, kRanks> paths;
  std::array<Path*, kRanks> shared;
  for (int i = 0; i < kRanks; ++i) shared[i] = &paths[i];
  EXPECT_FALSE(EndpointState(config(), shared).any_gone);
  paths[2].give_up();
  const EndpointState later(config(), shared);
  EXPECT_TRUE(later.links[2].gone && later.links[2].dead && later.any_gone);
  EXPECT_FALSE(later.links[1].gone);
}

TEST_F(EndpointStateTest, MulticastIsNumberedApart) {  // WIRE 1.5
  EXPECT_EQ(state_.prefix(wire::PacketType::probe, 1, kNow).sequence, 1u);
  EXPECT_EQ(state_.prefix(wire::PacketType::probe, 1, kNow).sequence, 2u);
  EXPECT_EQ(state_.prefix(wire::PacketType::probe, 2, kNow).sequence, 1u);
  EXPECT_EQ(state_.prefix(wire::PacketType::probe, kEveryRank, kNow).sequence, 1u);
}

TEST_F(EndpointStateTest, ARankThatLeavesMayFollowAPeer) {
  state_.lose(kNow, 1);
  EXPECT_TRUE(link(1).gone && state_.any_gone);
  EXPECT_EQ(state_.timers.next(), Instant::infinite_future());
  state_.departure.serve(kNow, state_.slowest_timeout());
  state_.lose(kNow, 2);
  EXPECT_EQ(state_.timers.next(), kNow);
}

}  // namespace
}  // namespace leeway::protocol
