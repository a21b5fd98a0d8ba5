// Tests deadlines, pauses and deaths of ranks, and calls that are served after their end. The
// library's core runs at every rank.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "group.h"

namespace leeway::sim::testing {
namespace {

scenario::Scenario group_of(std::uint32_t ranks, const std::string& delivery,
                            const std::string& link = "") {
  return scenario_of("ranks: " + std::to_string(ranks) +
                     " topology { star {} } operation { bytes: 400000 delivery { " + delivery +
                     " } } link { tier: uplink rate_mbps: 1000 }"
                     " link { tier: downlink rate_mbps: 1000 queue { bytes: 4000000 } " +
                     link + " }");
}

void submit_all(Group& group, std::uint32_t ranks, CallKind kind = CallKind::all_reduce) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) group.submit(rank, kind);
}

TEST(CoreEndpointsDeadline, ExactCallFailsWithoutAPeer) {
  Group group(group_of(4, "kind: exact deadline_ms: 50"));
  for (std::uint32_t rank = 0; rank < 3; ++rank) group.submit(rank, CallKind::all_reduce);
  ASSERT_TRUE(group.run_until_done(3));
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(group.results[rank].status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_EQ(group.results[rank].done_ns, 50'000'000);
  }
}

TEST(CoreEndpointsDeadline, LossyCallReturnsWhatItHas) {
  Group group(group_of(4, "kind: best_effort deadline_ms: 50"));
  for (std::uint32_t rank = 0; rank < 3; ++rank) group.submit(rank, CallKind::all_reduce);
  ASSERT_TRUE(group.run_until_done(3));
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(group.results[rank].status.code(), StatusCode::kDeadlineExceeded)
        << "spread exact promises all";
    EXPECT_TRUE(group.results[rank].deadline_cut);
    EXPECT_EQ(group.results[rank].contributors_min, 3u);
    EXPECT_LT(group.results[rank].arrived, group.results[rank].expected);
  }
}

TEST(CoreEndpointsFaults, PausedRankDelaysTheOthersByItsPause) {
  Group group(group_of(4, "kind: exact deadline_ms: 5000"));
  submit_all(group, 4);
  group.run_until(500'000);
  group.endpoints().pause(group.now(), 2);
  group.run_until(100'000'000);
  EXPECT_EQ(group.done(), 0u);
  group.endpoints().resume(group.now(), 2);
  ASSERT_TRUE(group.run_until_done(4));
  for (const CallResult& result : group.results) {
    EXPECT_TRUE(result.status.ok());
    EXPECT_EQ(result.arrived, result.expected);
    EXPECT_GE(result.done_ns, 100'000'000);
  }
}

TEST(CoreEndpointsFaults, DeadRankIsSilentAndTheOthersGoOn) {
  Group group(group_of(4, "kind: best_effort deadline_ms: 100"));
  submit_all(group, 4);
  group.run_until(200'000);
  group.endpoints().kill(group.now(), 1);
  ASSERT_TRUE(group.run_until_done(3));
  group.drain();
  EXPECT_EQ(group.told[1], 0u);
  for (const std::uint32_t rank : {0u, 2u, 3u}) EXPECT_EQ(group.told[rank], 1u);
}

TEST(CoreEndpointsRounds, EveryCallIsToldOnceAndConfirmedInTheEnd) {
  Group group(group_of(5, "kind: exact deadline_ms: 5000", "loss { random { p: 0.1 } }"));
  for (std::uint32_t round = 1; round <= 4; ++round) {
    submit_all(group, 5);
    ASSERT_TRUE(group.run_until_done(5 * round));
  }
  group.drain();
  for (const std::uint32_t told : group.told) EXPECT_EQ(told, 4u);
  EXPECT_TRUE(group.endpoints().idle());
}

// Re-encoded results are kept after a call ends. So callers go on while ranks that lack something
// are still answered.
TEST(CoreEndpointsRounds, EarlierCallsAreRepairedWhileTheNextRuns) {
  scenario::Scenario scenario =
      group_of(5, "kind: exact deadline_ms: 5000", "loss { random { p: 0.2 } }");
  scenario.mutable_operation()->set_codec("nvfp4");
  Group group(scenario);
  submit_all(group, 5);
  std::vector<std::uint32_t> submitted(5, 1);
  bool overlapped = false;
  while (group.done() < 5 * 6) {
    ASSERT_TRUE(group.step());
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      if (group.told[rank] < submitted[rank] || submitted[rank] == 6) continue;
      EXPECT_TRUE(group.results[rank].status.ok());
      EXPECT_EQ(group.results[rank].arrived, group.results[rank].expected);
      overlapped |= group.done() % 5 != 0;
      ++submitted[rank];
      group.submit(rank, CallKind::all_reduce);
    }
  }
  group.drain();
  EXPECT_TRUE(overlapped);
  EXPECT_TRUE(group.endpoints().idle());
  EXPECT_LT(group.results[0].done_ns, 5'000'000'000);
}

TEST(CoreEndpointsRounds, SmallWindowsComeToRest) {
  scenario::Scenario scenario = group_of(3, "kind: exact deadline_ms: 5000");
  scenario.mutable_operation()->set_window_bytes(4500);
  Group group(scenario);
  submit_all(group, 3);
  ASSERT_TRUE(group.run_until_done(3));
  for (int i = 0; i < 100'000 && group.step(); ++i) {
  }
  EXPECT_FALSE(group.step());
}

TEST(CoreEndpointsRounds, SameSeedSameTrace) {
  const auto trace = [](std::uint64_t seed) {
    Group group(group_of(5, "kind: best_effort deadline_ms: 500", "loss { random { p: 0.1 } }"),
                seed);
    submit_all(group, 5);
    EXPECT_TRUE(group.run_until_done(5));
    return group.network().trace().value();
  };
  EXPECT_EQ(trace(1), trace(1));
  EXPECT_NE(trace(1), trace(2));
}

}  // namespace
}  // namespace leeway::sim::testing
