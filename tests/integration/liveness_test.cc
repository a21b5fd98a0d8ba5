// Tests with real processes and signals what happens if a rank dies, or seems dead and comes back:
// how the other ranks go on, and what the rank itself is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "integration/rank_group.h"

namespace leeway::integration {
namespace {

constexpr int kDeadRank = 2;
constexpr double kCallMs = 200.0;
constexpr double kPeerTimeoutMs = 3000.0;  // Options::peer_timeout
constexpr std::chrono::seconds kPatience(120);

// A loaded machine may keep a process waiting for this long.
constexpr double kMachineMs = 500.0;

RankSetup rounds_of(const std::string& delivery, double deadline_ms, int rounds, int cuts) {
  return {.scenario = {"endless_rounds", "elements=65536", "watched=2",
                       "deadline_ms=" + std::to_string(static_cast<int>(deadline_ms)),
                       "delivery=" + delivery, "rounds=" + std::to_string(rounds),
                       "cuts=" + std::to_string(cuts), "leave=" + std::to_string(cuts < rounds)}};
}

void expect_all_survivors(const std::vector<Facts>& all, auto&& expectation) {
  ASSERT_EQ(all.size(), 4u);
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
    if (rank == kDeadRank) continue;
    ASSERT_TRUE(all[rank].is_object()) << "rank " << rank;
    expectation(rank, all[rank]);
  }
}

// Calls first wait for the dead rank until their deadline. One call then ends when the others give
// the rank up. Later calls must take no longer than usual.
TEST(Liveness, ADeadRankCostsLossyCallsNothingAfterThePeerTimeout) {
  RankGroup group(rounds_of("best_effort", kCallMs, 5'000, 100'000));
  ASSERT_TRUE(group.await_mark("looping"));
  group[kDeadRank].signal(SIGKILL);
  const auto all = group.finish(kPatience, kDeadRank);
  expect_all_survivors(all, [](int rank, const Facts& facts) {
    EXPECT_EQ(facts["first_error"]["code"], "ok") << facts["first_error"];
    double waited_ms = 0.0;
    std::vector<double> before;
    std::vector<double> after;
    for (const Facts& call : facts["calls"]) {
      const double ms = call["wall_ms"];
      const bool without = call["arrived"] < call["expected"];
      if (without && ms >= kCallMs / 4) waited_ms += ms;
      if (!without) before.push_back(ms);
      if (without && ms < kCallMs / 4) after.push_back(ms);
    }
    ASSERT_GE(after.size(), 100u);
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    std::printf("rank %d: waited %.1f ms for the dead; a call took %.3f ms before, %.3f after\n",
                rank, waited_ms, before[before.size() / 2], after[after.size() / 2]);
    EXPECT_LE(waited_ms, kPeerTimeoutMs + kMachineMs);
    EXPECT_LE(after[after.size() / 2], 2 * before[before.size() / 2]);
  });
}

TEST(Liveness, ExactCallsNameTheDeadWithinThePeerTimeout) {
  RankGroup group(rounds_of("exact", 60'000, 100'000, 1));
  ASSERT_TRUE(group.await_mark("looping"));
  group[kDeadRank].signal(SIGKILL);
  const auto all = group.finish(kPatience, kDeadRank);
  expect_all_survivors(all, [](int rank, const Facts& facts) {
    EXPECT_EQ(facts["first_error"]["code"], "peer_lost");
    const std::string text = facts["first_error"]["text"];
    EXPECT_NE(text.find("rank 2 is dead"), std::string::npos) << text;
    const double ms = facts["calls"].back()["wall_ms"];
    std::printf("rank %d: %.1f ms: %s\n", rank, ms, text.c_str());
    EXPECT_LE(ms, kPeerTimeoutMs + kMachineMs);
  });
}

TEST(Liveness, ARankThatWasStoppedForLongIsToldThatItWasGivenUp) {
  // A rank prints its mark after kCuts cut calls: one call before the peer time-out, after which
  // the other ranks go on without the stopped one.
  constexpr int kCuts = static_cast<int>(kPeerTimeoutMs / kCallMs) - 1;
  RankSetup setup = rounds_of("best_effort", kCallMs, 10'000, kCuts);
  setup.scenario.back() = "leave=0";
  RankGroup group(setup);
  ASSERT_TRUE(group.await_mark("looping"));
  group[kDeadRank].signal(SIGSTOP);
  const TimePoint until = Clock::now() + kPatience;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank == kDeadRank) continue;
    EXPECT_TRUE(group[rank].read_line(until)) << "rank " << rank;
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  group[kDeadRank].signal(SIGCONT);
  const auto all = group.finish(kPatience);
  ASSERT_EQ(all.size(), 4u);
  ASSERT_TRUE(all[kDeadRank].is_object());
  const std::string text = all[kDeadRank]["first_error"]["text"];
  std::printf("%s\n", text.c_str());
  EXPECT_EQ(all[kDeadRank]["first_error"]["code"], "peer_lost");
  EXPECT_NE(text.find("gave this rank up"), std::string::npos) << text;
}

}  // namespace
}  // namespace leeway::integration
