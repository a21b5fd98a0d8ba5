#include "protocol/inquiry.h"

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

using InquiryTest = EndpointParts;

TEST_F(InquiryTest, ComesByAnEighthOfTheDeadline) {
  FakeClient client(1, 1);
  RoundPlan plan = plan_of(FlowKind::reduce);
  Round& slow = open(client, plan);
  inquiry_.arm(kNow, slow);
  EXPECT_EQ(slow.inquire_at, kNow + 16 * state_.slowest_timeout());
  plan.deadline_length = 80ms;
  FakeClient another(1, 1);
  Round& hasty = open(another, plan);
  inquiry_.arm(kNow, hasty);
  EXPECT_EQ(hasty.inquire_at, kNow + 10ms);
}

TEST_F(InquiryTest, AsksAllThatAreThereAndBacksOff) {
  FakeClient client(1, 1);
  RoundPlan plan = plan_of(FlowKind::reduce);
  plan.deadline_length = 80ms;
  Round& round = open(client, plan);
  link(2).gone = true;
  inquiry_.on_time(kNow, round);
  EXPECT_TRUE(link(1).probe_due && link(3).probe_due);
  EXPECT_FALSE(link(2).probe_due);
  EXPECT_EQ(round.inquire_at, kNow + 20ms);
}

TEST_F(InquiryTest, AsksNobodyOnceTheCallerHasGone) {
  FakeClient client(1, 1);
  Round& round = open(client, plan_of(FlowKind::reduce));
  round.done = true;
  inquiry_.on_time(kNow, round);
  EXPECT_FALSE(link(1).probe_due);
  EXPECT_EQ(round.inquire_at, Instant::infinite_future());
}

TEST_F(InquiryTest, APeerMayMeanAnotherOperationUntilAllHaveOpenedThisOne) {
  FakeClient client(1, 8);
  Round& round = open(client, plan_of(FlowKind::reduce));
  EXPECT_TRUE(inquiry_.may_mean_another(round, FlowKind::reduce, 1));
  round.receive(FlowKind::reduce, 1).tries = ReceiveFlow::kFruitlessMost;
  EXPECT_TRUE(inquiry_.may_mean_another(round, FlowKind::reduce, 1)) << "one may still tell";
  for (Rank peer = 1; peer < kRanks; ++peer) opens(peer, 1);
  EXPECT_FALSE(inquiry_.may_mean_another(round, FlowKind::reduce, 1));
  round.receive(FlowKind::reduce, 2).arrived_count = 1;
  EXPECT_FALSE(inquiry_.may_mean_another(round, FlowKind::reduce, 2)) << "it sent packets of it";
}

}  // namespace
}  // namespace leeway::protocol
