// Tests a peer that dies, one that only seems to, and one that comes back (WIRE 6.6, 6.7).
#include <gtest/gtest.h>

#include <string>

#include "support/datagram_view.h"
#include "support/float_all_reduce.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;

constexpr Duration kLivenessTimeout = 3s;
constexpr int kRanks = 4;
constexpr Rank kVictim = 3;

class Liveness : public ::testing::Test {
 protected:
  // Makes one call on all ranks, so that round trips are known.
  void SetUp() override {
    FloatAllReduce call(kRanks, 5000);
    call.submit_all(group_);
    ASSERT_TRUE(call.finish(group_));
    ASSERT_TRUE(group_.settle());
  }
  void kill(Rank rank) { group_.freeze(rank); }
  Endpoint& endpoint(Rank rank) { return group_.engine(rank).endpoint(); }

  // Makes a call on the survivors. Returns how long the slowest of them took.
  Duration reduce(FloatAllReduce& call, Duration limit = 100s) {
    const Instant start = group_.now();
    for (Rank rank = 0; rank < kVictim; ++rank) call.submit(group_, rank);
    EXPECT_TRUE(group_.run(call.requests(), limit));
    return group_.now() - start;
  }

  EngineGroup group_{GroupOptions{.size = kRanks, .peer_timeout = kLivenessTimeout}};
};

TEST_F(Liveness, AnExactCallWithoutDeadlineFailsAfterThePeerTimeoutAndNamesTheDead) {
  kill(kVictim);
  FloatAllReduce call(kRanks, 5000, exact(no_deadline));
  const Duration took = reduce(call);
  EXPECT_GE(took, kLivenessTimeout - 100ms);
  EXPECT_LE(took, kLivenessTimeout + 500ms);
  for (const auto* request : call.requests()) {
    EXPECT_EQ(request->status.code(), StatusCode::kPeerLost);
    EXPECT_NE(request->status.text().find("rank 3 is dead"), std::string::npos)
        << request->status.text();
  }
}

TEST_F(Liveness, LaterExactCallsFailAtOnce) {
  kill(kVictim);
  FloatAllReduce first(kRanks, 5000, exact(no_deadline));
  reduce(first);
  FloatAllReduce second(kRanks, 5000, exact(no_deadline));
  EXPECT_EQ(reduce(second), Duration(0));
  EXPECT_EQ(second.requests()[0]->status.code(), StatusCode::kPeerLost);
}

TEST_F(Liveness, LossyCallsLoseTheirDeadlineToADeadPeerOnlyUntilThePeerTimeout) {
  const Delivery lossy = best_effort(200ms);
  FloatAllReduce whole(kRanks, 5000, lossy);
  whole.submit_all(group_);
  const Instant start = group_.now();
  ASSERT_TRUE(group_.run(whole.requests()));
  const Duration usual = group_.now() - start;
  kill(kVictim);
  const Instant killed = group_.now();
  while (group_.now() - killed < kLivenessTimeout + 200ms) {
    FloatAllReduce call(kRanks, 5000, lossy);
    EXPECT_LE(reduce(call), 201ms);
    group_.run_until([] { return false; }, 10ms);
  }
  for (int i = 0; i < 3; ++i) {
    FloatAllReduce call(kRanks, 5000, lossy);
    EXPECT_LE(reduce(call), usual + 1ms) << "nothing is waited for any more";
    for (const auto* request : call.requests()) {
      EXPECT_EQ(request->status.code(), StatusCode::kPeerLost) << "spread exact promises all";
      EXPECT_GT(request->report.loss, 0.2);
    }
  }
}

TEST_F(Liveness, ARankThatDoesSomethingElseLives) {
  FloatAllReduce call(kRanks, 5000, exact(no_deadline));
  for (Rank rank = 0; rank < kVictim; ++rank) call.submit(group_, rank);
  group_.run_until([] { return false; }, 5min);
  EXPECT_FALSE(call.requests()[0]->done);
  call.submit(group_, kVictim);
  EXPECT_TRUE(call.finish(group_));
}

// During a call ranks watch each other even if they exchange no packets. The watch must end with
// the call.
TEST_F(Liveness, NothingIsExpectedOfARankAfterACallThatIsOver) {
  for (const std::size_t count : {std::size_t{5000}, std::size_t{10}}) {
    FloatAllReduce call(kRanks, count);
    call.submit_all(group_);
    ASSERT_TRUE(call.finish(group_));
    ASSERT_TRUE(group_.settle());
    kill(kVictim);
    group_.run_until([] { return false; }, 20s);
    for (Rank rank = 0; rank < kVictim; ++rank)
      EXPECT_EQ(endpoint(rank).counters().peers_given_up, 0u) << "rank " << rank;
    group_.thaw(kVictim);
  }
}

TEST_F(Liveness, OneWhoComesBackIsToldAndAllItsCallsSayWhy) {
  kill(kVictim);
  FloatAllReduce call(kRanks, 5000, exact(no_deadline));
  reduce(call);
  FloatAllReduce own(kRanks, 5000, exact(no_deadline));
  auto& request = own.submit(group_, kVictim);
  group_.run_until([] { return false; }, 7s);
  EXPECT_FALSE(request.done) << "it is stopped";
  group_.thaw(kVictim);
  ASSERT_TRUE(group_.run({&request}, 2s));
  EXPECT_EQ(request.status.code(), StatusCode::kPeerLost);
  EXPECT_NE(request.status.text().find("gave this rank up"), std::string::npos)
      << request.status.text();
  FloatAllReduce later(kRanks, 5000, best_effort(100ms));
  EXPECT_TRUE(later.submit(group_, kVictim).done);
  EXPECT_EQ(later.requests()[0]->status.code(), StatusCode::kPeerLost);
  for (Rank rank = 0; rank < kVictim; ++rank)
    EXPECT_EQ(endpoint(rank).counters().peers_given_up, 1u) << "it took no other for dead";
  EXPECT_EQ(endpoint(kVictim).counters().peers_given_up, 0u);
}

// The stopped rank takes its pause for a round trip. Waits that were multiples of the pause once
// took minutes.
TEST_F(Liveness, OneWhoWasGivenUpLeavesAtOnce) {
  kill(kVictim);
  FloatAllReduce call(kRanks, 5000, exact(no_deadline));
  reduce(call);
  FloatAllReduce own(kRanks, 5000, exact(no_deadline));
  auto& request = own.submit(group_, kVictim);
  group_.run_until([] { return false; }, 7s);
  group_.thaw(kVictim);
  ASSERT_TRUE(group_.run({&request}, 2s));
  const Instant start = group_.now();
  endpoint(kVictim).leave(group_.now());
  ASSERT_TRUE(group_.run_until([&] { return endpoint(kVictim).left(); })) << "it waits still";
  EXPECT_LE(group_.now() - start, 10ms);
}

TEST_F(Liveness, LeavingDoesNotWaitForTheDead) {
  kill(kVictim);
  FloatAllReduce call(kRanks, 5000, exact(no_deadline));
  reduce(call);
  const Instant start = group_.now();
  for (Rank rank = 0; rank < kVictim; ++rank) endpoint(rank).leave(group_.now());
  ASSERT_TRUE(group_.run_until(
      [&] { return endpoint(0).left() && endpoint(1).left() && endpoint(2).left(); }));
  EXPECT_LE(group_.now() - start, 100ms);
}

// The others' good-byes alone would say that they left of their own will.
TEST_F(Liveness, OneWhoComesBackWhenTheOthersHaveLeftIsToldWhy) {
  kill(kVictim);
  FloatAllReduce call(kRanks, 5000, exact(no_deadline));
  reduce(call);
  for (Rank rank = 0; rank < kVictim; ++rank) endpoint(rank).leave(group_.now());
  ASSERT_TRUE(group_.run_until(
      [&] { return endpoint(0).left() && endpoint(1).left() && endpoint(2).left(); }));
  for (Rank rank = 0; rank < kVictim; ++rank) kill(rank);
  group_.thaw(kVictim);
  group_.run_until([] { return false; }, 1ms);
  FloatAllReduce own(kRanks, 5000, exact(no_deadline));
  const auto& request = own.submit(group_, kVictim);
  EXPECT_TRUE(request.done);
  EXPECT_NE(request.status.text().find("gave this rank up"), std::string::npos)
      << request.status.text();
}

TEST_F(Liveness, HeavyLossKillsNobody) {
  EngineGroup lossy(GroupOptions{
      .size = kRanks, .faults = {.loss = 0.3, .seed = 5}, .peer_timeout = kLivenessTimeout});
  for (int i = 0; i < 20; ++i) {
    FloatAllReduce call(kRanks, 50'000, exact(no_deadline));
    call.submit_all(lossy);
    ASSERT_TRUE(call.finish(lossy));
  }
  for (Rank rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(lossy.engine(rank).endpoint().counters().peers_given_up, 0u);
}

}  // namespace
}  // namespace leeway::protocol
