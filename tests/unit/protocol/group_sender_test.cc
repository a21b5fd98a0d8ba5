#include "protocol/group_sender.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kWindow = 10;
constexpr int kPeers = 4;  // includes this rank, 0

class Group : public ::testing::Test {
 protected:
  Group() {
    for (Rank peer = 0; peer < kPeers; ++peer) {
      paths_[peer].configure(kWindow, 10ms);
      links_[peer].attach(paths_[peer]);
    }
    round_.plan = &round_plan_;
    round_plan_.phase(FlowKind::spread).active = true;
    round_plan_.phase(FlowKind::spread).same_for_all = true;
    phase().send.resize(kPeers);
    for (Rank peer = 1; peer < kPeers; ++peer) {
      phase().send[peer].packets = 100;
      links_[peer].peer_opened_below = 1;
    }
  }
  PhaseState& phase() { return round_.phase(FlowKind::spread); }
  const PhasePlan& plan() { return round_plan_.phase(FlowKind::spread); }
  // Notes that the peer has reported multicast datagram `largest`.
  void hears(Rank peer, std::uint32_t largest) {
    links_[peer].group.on_report(group_.sent(), largest);
  }
  void form(std::initializer_list<Rank> members) {
    group_.take_sequence();
    for (const Rank peer : members) hears(peer, 1);
    ASSERT_TRUE(group_.form(phase(), plan()));
  }

  std::vector<Path> paths_{kPeers};
  std::vector<Link> links_{kPeers};
  GroupSender group_{true, links_};
  RoundPlan round_plan_;
  Round round_;
};

TEST_F(Group, IsMadeOfPeersThatReportedMulticast) {
  group_.take_sequence();
  EXPECT_FALSE(group_.form(phase(), plan())) << "nobody is known to hear";
  hears(2, 1);
  EXPECT_FALSE(group_.form(phase(), plan())) << "with one receiver there is nothing to share";
  hears(3, 1);
  EXPECT_TRUE(group_.form(phase(), plan()));
  EXPECT_EQ(phase().group.members, 2u);
  EXPECT_EQ(phase().group.first_member, 2);
  EXPECT_FALSE(phase().send[1].grouped);
}

TEST_F(Group, IsNotFormedWithoutATransportOrForPacketsThatDiffer) {
  group_.take_sequence();
  for (const Rank peer : {1, 2, 3}) hears(peer, 1);
  EXPECT_FALSE(GroupSender(false, links_).form(phase(), plan()));
  round_plan_.phase(FlowKind::spread).same_for_all = false;
  EXPECT_FALSE(group_.form(phase(), plan()));
}

TEST_F(Group, CreditIsTheLeastOfItsMembers) {  // WIRE 3.10
  form({1, 2});
  EXPECT_EQ(group_.credit(round_, FlowKind::spread), kWindow);
  for (int i = 0; i < 6; ++i) group_.take_sequence();
  hears(1, 7);
  EXPECT_EQ(group_.credit(round_, FlowKind::spread, 1), kWindow);
  EXPECT_EQ(group_.credit(round_, FlowKind::spread), kWindow - 6);
}

TEST_F(Group, GetsEagerPacketsWhileAMemberHasNotOpenedTheOperation) {  // WIRE 2.4
  links_[2].peer_opened_below = 0;
  form({1, 2});
  EXPECT_EQ(group_.credit(round_, FlowKind::spread), limits::kEagerPackets);
}

TEST_F(Group, GoesOnWithoutAMemberThatLeaves) {
  form({1, 2, 3});
  GroupSender::leave(phase(), 1);
  EXPECT_EQ(phase().group.first_member, 2);
  GroupSender::leave(phase(), 3);
  EXPECT_EQ(phase().group.members, 1u);
  GroupSender::leave(phase(), 2);
  EXPECT_FALSE(phase().group.open());
}

TEST_F(Group, WaitsForAMemberEightTimeoutsAndProbesAfterOne) {
  form({1, 2});
  for (std::uint32_t i = 0; i < kWindow; ++i) group_.take_sequence();
  EXPECT_EQ(group_.credit(round_, FlowKind::spread), 0u);
  const Instant now{1'000'000};
  const Duration timeout = links_[1].rtt().timeout();
  EXPECT_EQ(group_.wait(now, round_, FlowKind::spread), now + 8 * timeout);
  EXPECT_EQ(group_.probe_at(), now + timeout);
  EXPECT_EQ(group_.wait(now + 1ms, round_, FlowKind::spread), now + 8 * timeout) << "since then";
  EXPECT_FALSE(group_.probe_due());
  group_.on_probe_time();
  EXPECT_TRUE(group_.probe_due());
  group_.on_probed();
  EXPECT_FALSE(group_.probe_due());
}

}  // namespace
}  // namespace leeway::protocol
