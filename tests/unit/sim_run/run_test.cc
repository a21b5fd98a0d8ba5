// Tests whole runs of small scenarios, in which all parts work together.
#include "run/run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "support/seeds.h"
#include "unit/sim_run/record_of.h"

namespace leeway::sim {
namespace {

constexpr const char* kLossy =
    "ranks: 4 rounds: 6 operation { bytes: 65536 } link { delay_ms { fixed: 0.1 } loss { random { "
    "p: 0.1 } } } ";

TEST(Run, TheSameSeedGivesTheSameRunAndAnotherSeedAnother) {
  const RunRecord first = record_of(kLossy, 5);
  const RunRecord again = record_of(kLossy, 5);
  EXPECT_EQ(first.trace_hash, again.trace_hash);
  EXPECT_EQ(first.simulated_ns, again.simulated_ns);
  EXPECT_EQ(measure(first, "error.nmse"), measure(again, "error.nmse"));
  EXPECT_NE(first.trace_hash, record_of(kLossy, 6).trace_hash);
}

TEST(Run, WithoutLossEveryResultIsTheAverage) {
  const RunRecord record =
      record_of("ranks: 5 rounds: 3 operation { bytes: 40000 } link { delay_ms { fixed: 0.1 } }");
  ASSERT_EQ(record.rounds.size(), 3u);
  for (const RoundRecord& round : record.rounds) {
    EXPECT_EQ(round.live_ranks, 5u);
    EXPECT_EQ(round.arrived, round.expected);
    EXPECT_GT(round.expected, 0u);
    EXPECT_DOUBLE_EQ(round.contributors_mean, 5);
    EXPECT_LT(round.error_mean_square, 1e-12 * round.value_mean_square);
  }
  EXPECT_EQ(measure(record, "loss"), 0);
}

TEST(Run, LossesOfTheLinksAreThoseOfTheReport) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 40 operation { bytes: 262144 datagram_bytes: 512 } "
      "link { delay_ms { fixed: 0.1 } loss { random { p: 0.1 } } }");
  const double expected = 2 * 3 * 4 * 40.0 * (65536 / (512 - 44) / 4);  // a rough number of packets
  EXPECT_NEAR(measure(record, "loss_first_pass"), 0.1, 4 * std::sqrt(0.09 / expected));
  EXPECT_GT(measure(record, "error.nmse"), 1e-4);
}

TEST(Run, AStragglerIsWaitedForAndTimeIsCounted) {
  const RunRecord record = record_of(
      "ranks: 3 rounds: 4 operation { bytes: 4096 } link { delay_ms { fixed: 0.1 } } "
      "compute { constant_ms: 2 } slow { rank: 1 factor: 5 }");
  EXPECT_GE(measure(record, "step_ms.mean"), 10);
  EXPECT_GE(measure(record, "round_ms.p50"), 8) << "from the first submission to the last return";
}

TEST(Run, ARankThatWasGivenUpHasItsCallsRefused) {
  const RunRecord record = record_of(
      "ranks: 3 rounds: 8 operation { bytes: 4096 delivery { deadline_ms: 20000 } peer_timeout_ms: "
      "300 } link { delay_ms { fixed: 0.2 } } pause { rank: 1 from_round: 2 for_ms: 2000 } "
      "checkers { skip: \"i20\" }");
  ASSERT_EQ(record.rounds.size(), 8u);
  EXPECT_EQ(record.rounds[1].failed_calls, 0u);
  for (std::size_t round = 3; round < 8; ++round)
    EXPECT_GE(record.rounds[round].failed_calls, 1u) << "round " << round;
}

// Rank 1 is stopped. Ranks 0 and 3 give it up while they wait for rank 2, which computes. They are
// more than half of the others, so rank 1 believes them.
TEST(Run, WhatARankSendsThatWasGivenUpIsNotUsed) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 1 operation { bytes: 65536 delivery { kind: best_effort deadline_ms: 20000 "
      "} spread: best_effort peer_timeout_ms: 300 } link { delay_ms { fixed: 0.2 } } "
      "compute { constant_ms: 1 } slow { "
      "rank: 2 factor: 3000 } pause { rank: 1 for_ms: 1000 } checkers { skip: \"i20\" }");
  EXPECT_EQ(record.rounds.at(0).failed_calls, 1u) << "that of rank 1";
}

TEST(Run, ADeadRankIsMissingFromThenOn) {
  const RunRecord record = record_of(
      "ranks: 3 rounds: 4 operation { bytes: 4096 delivery { deadline_ms: 50 } spread: best_effort "
      "} link { delay_ms { fixed: 0.1 } } crash { rank: 2 from_round: 2 }");
  ASSERT_EQ(record.rounds.size(), 4u);
  EXPECT_EQ(record.rounds[1].live_ranks, 3u);
  EXPECT_EQ(record.rounds[3].live_ranks, 2u);
  EXPECT_LT(record.rounds[3].arrived, record.rounds[3].expected);
}

void expect_passed(const RunRecord& record, const std::string& id) {
  for (const CheckRecord& check : record.checks) {
    EXPECT_NE(check.verdict, Verdict::failed) << check.id << ": " << check.first_failure;
    if (check.id == id) {
      EXPECT_GT(check.checked, 0u) << id;
    }
  }
}

TEST(Run, RanksThatLeaveServeTheOthersFirst) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 5 operation { bytes: 65536 delivery { kind: exact } spread: exact } "
      "link { delay_ms { fixed: 0.1 } loss { random { p: 0.2 } } } "
      "leave {} leave { ranks: \"2\" after_ms: 3000 }");
  EXPECT_EQ(measure(record, "failed_calls"), 0);
  EXPECT_GT(record.simulated_ns, 3'000'000'000);
  expect_passed(record, "i15");
}

TEST(Run, NobodyWaitsForARankThatLeftBefore) {
  const RunRecord record = record_of(
      "ranks: 3 rounds: 4 operation { bytes: 4096 delivery { deadline_ms: 5000 } spread: "
      "best_effort } link { delay_ms { fixed: 0.1 } } "
      "leave { ranks: \"2\" from_round: 2 at_once: true }");
  ASSERT_EQ(record.rounds.size(), 4u);
  EXPECT_EQ(record.rounds[3].live_ranks, 2u);
  EXPECT_LT(record.rounds[3].call_ns_max, 1'000'000'000);
  expect_passed(record, "i15");
}

TEST(Run, MessagesArriveInWhateverOrderTheyArePosted) {
  const RunRecord record = record_of(
      "ranks: 5 rounds: 6 operation { kind: messages messages_max: 40 bytes: 20000 "
      "delivery { kind: exact deadline_ms: 60000 } } "
      "link { delay_ms { fixed: 0.1 } loss { random { p: 0.1 } } }");
  EXPECT_EQ(measure(record, "failed_calls"), 0);
  expect_passed(record, "i16");
}

TEST(Run, OperationsWithARootGiveWhatTheyPromise) {
  for (const char* const kind : {"gather", "scatter", "reduce", "broadcast"}) {
    SCOPED_TRACE(kind);
    const RunRecord record =
        record_of(std::string("ranks: 5 rounds: 6 operation { kind: ") + kind +
                  " root: 3 bytes: 40000 delivery { kind: exact deadline_ms: 60000 } } "
                  "link { delay_ms { fixed: 0.1 } loss { random { p: 0.1 } } }");
    EXPECT_EQ(measure(record, "failed_calls"), 0);
    expect_passed(record, std::string(kind) == "reduce" ? "i5" : "i6");
  }
}

TEST(Run, WhatOwnersUsedIsWhatTheySay) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 20 operation { bytes: 8192 confirm_use: true owner_weights: true } "
      "link { delay_ms { fixed: 0.1 } } link { from: \"1\" loss { random { p: 0.6 } } }");
  EXPECT_EQ(measure(record, "failed_calls"), 0);
  expect_passed(record, "i17");
}

TEST(Run, ContributionsThatAreNotFiniteAreLeftOut) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 20 operation { bytes: 65536 codec: \"nvfp4\" non_finite: 0.5 } "
      "link { delay_ms { fixed: 0.1 } loss { random { p: 0.1 } } }");
  EXPECT_EQ(measure(record, "failed_calls"), 0);
  expect_passed(record, "i3");
  expect_passed(record, "i5");
}

// Returns the first of the congestion controls `all`, or all of them in `tools/test --all`.
std::vector<std::string> controls(std::vector<std::string> all) {
  if (!testing::kTakesAll) all.resize(1);
  return all;
}

TEST(Run, PacedSendersSlowDownForMarks) {
  // A queue marks packets instead of dropping them, and paced senders slow down for marks as they
  // do for losses.
  for (const std::string& control : controls({"wan", "scavenger", "fabric"})) {
    const std::string text =
        "ranks: 4 rounds: 6 operation { bytes: 4194304 delivery { kind: exact deadline_ms: 60000 } "
        "} topology { star {} } congestion { control: " +
        control + " } link { tier: uplink rate_mbps: 100 delay_ms { fixed: 10 } queue { bytes: ";
    const RunRecord dropping = record_of(text + "10000 } }");
    const RunRecord marking = record_of(text + "60000 ecn_at: 10000 } }");
    if (control != "fabric") {  // fabric's queues are shorter than 10 kB
      EXPECT_GT(dropping.network.lost[0], 0u) << control;
    }
    EXPECT_EQ(marking.network.lost[0], 0u) << control;
    EXPECT_EQ(measure(marking, "failed_calls"), 0) << control;
  }
}

// The sockets of stopped processes overflow, yet everything must arrive.
TEST(Run, ACallOutlastsAFullSocket) {
  for (const std::string& control : controls({"fixed", "wan", "scavenger", "fabric"})) {
    const RunRecord record = record_of(
        "ranks: 4 rounds: 4 operation { bytes: 4194304 socket_bytes: 100000 delivery { kind: exact "
        "deadline_ms: 60000 } } topology { star {} } congestion { control: " +
        control +
        " } link { tier: uplink rate_mbps: 100 delay_ms { fixed: 5 } queue { bytes: 200000 } } "
        "pause { rank: 1 from_round: 1 after_ms: 50 for_ms: 100 } "
        "pause { rank: 1 from_round: 2 after_ms: 50 for_ms: 100 }");
    EXPECT_EQ(measure(record, "failed_calls"), 0) << control;
    expect_passed(record, "i6");
  }
}

TEST(Run, MulticastSendsABroadcastOnce) {
  const std::string text =
      "ranks: 5 rounds: 6 operation { kind: broadcast bytes: 400000 delivery { kind: exact } } "
      "topology { star {} } link { delay_ms { fixed: 0.1 } } ";
  const RunRecord alone = record_of(text);
  const RunRecord shared = record_of(text + "multicast {}");
  EXPECT_LT(2 * shared.network.sent[0], alone.network.sent[0]);
  expect_passed(shared, "i6");
}

TEST(Run, APauseDelaysAndLosesNothing) {
  const std::string calm =
      "ranks: 3 rounds: 4 operation { bytes: 4096 delivery { kind: exact deadline_ms: 1000 } } "
      "link { delay_ms { fixed: 0.1 } } ";
  const RunRecord record =
      record_of(calm + "pause { rank: 1 from_round: 1 after_ms: 0.05 for_ms: 30 }");
  EXPECT_EQ(measure(record, "failed_calls"), 0);
  EXPECT_GE(record.rounds[1].call_ns_max, 29'000'000);
  EXPECT_LT(record.rounds[0].call_ns_max, 10'000'000);
  EXPECT_LT(record.rounds[3].call_ns_max, 10'000'000);
}

// Ranks 1 and 3 have no path to each other for a second, so a third rank relays. Tensors are large
// enough for pieces.
TEST(Run, RanksBehindSymmetricTranslatorsReduceThroughAThird) {
  const std::string common =
      "ranks: 4 rounds: 8 operation { bytes: 65536 delivery { kind: exact deadline_ms: 20000 } } "
      "link { delay_ms { fixed: 5 } } sealing {} ";
  const RunRecord straight = record_of(common);
  const RunRecord relayed = record_of(common + "translator { ranks: \"1,3\" symmetric: true }");
  EXPECT_EQ(measure(relayed, "failed_calls"), 0);
  EXPECT_GE(relayed.rounds[0].call_ns_max, 1'000'000'000);
  EXPECT_LE(relayed.rounds[0].call_ns_max, 3'000'000'000);
  // Later rounds take the detour's time, and no time-out.
  EXPECT_LE(relayed.rounds[7].call_ns_max, 3 * straight.rounds[7].call_ns_max);
  expect_passed(relayed, "i6");
  expect_passed(relayed, "i11");
}

// The relay dies, and another must take over before ranks 3 and 4 give each other up.
TEST(Run, RanksOutliveTheirRelay) {
  const RunRecord record = record_of(
      "ranks: 5 rounds: 30 operation { bytes: 16384 delivery { kind: best_effort deadline_ms: 400 "
      "} spread: best_effort "
      "peer_timeout_ms: 3000 } link { delay_ms { fixed: 5 } } sealing {} "
      "translator { ranks: \"3,4\" symmetric: true } crash { rank: 0 from_round: 15 }");
  expect_passed(record, "i11");
  // The last rounds have all live ranks.
  EXPECT_EQ(record.rounds[29].contributors_min, 4);
}

// Only two ranks are not done; their data go through a share of rank 0's uplink. Rank 0 is leaving,
// but must stay for the two.
TEST(Run, ARelayThatLeavesStaysForThoseWhoUseIt) {
  const RunRecord record = record_of(
      "ranks: 3 rounds: 1 operation { kind: all_gather bytes: 1048576 delivery { kind: exact "
      "deadline_ms: 40000 } } link { delay_ms { fixed: 5 } } sealing {} "
      "translator { ranks: \"1,2\" symmetric: true } "
      "congestion { control: fixed rate_mbps: 20 } leave {}");
  EXPECT_EQ(measure(record, "failed_calls"), 0);
  EXPECT_GE(record.rounds[0].call_ns_max, 3'000'000'000);
}

// The first datagrams after a pause are lost, as behind translators that forget a silent rank. The
// pause must not count as a round trip; otherwise ranks would wait as long again before they repeat
// datagrams.
TEST(Run, APauseIsNotTakenForARoundTrip) {
  for (const int after_us : {20, 50, 100, 150, 200, 250, 300, 350}) {
    const std::string after = std::to_string(after_us / 1000.0);
    const std::string resumed = std::to_string(after_us / 1000.0 + 5000.05);
    const RunRecord record = record_of(
        "ranks: 2 rounds: 20 operation { bytes: 65536 delivery { kind: exact deadline_ms: 60000 } "
        "peer_timeout_ms: 20000 } link { delay_ms { fixed: 0.1 } } pause { rank: 0 from_round: 10 "
        "after_ms: " +
        after + " for_ms: 5000 } pause { rank: 1 from_round: 10 after_ms: " + after +
        " for_ms: 5000 } partition { between: \"0\" and: \"1\" from_round: 10 after_ms: " +
        resumed + " for_ms: 20 }");
    EXPECT_EQ(measure(record, "failed_calls"), 0);
    std::int64_t longest = 0;
    for (const auto& round : record.rounds) longest = std::max(longest, round.call_ns_max);
    EXPECT_GE(longest, 4'999'000'000) << "paused after " << after << " ms";
    EXPECT_LT(longest, 5'300'000'000) << "paused after " << after << " ms";
  }
}

TEST(Run, APartitionLosesWhatItSeparates) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 3 operation { kind: reduce_scatter bytes: 65536 delivery { deadline_ms: 20 "
      "} } "
      "link { delay_ms { fixed: 0.1 } } partition { from: \"0\" to: \"1\" from_round: 1 for_ms: 60 "
      "}");
  EXPECT_EQ(record.rounds[0].arrived, record.rounds[0].expected);
  EXPECT_LT(record.rounds[1].arrived, record.rounds[1].expected);
}

TEST(Run, ReplicasStayCloseAndAreMeasured) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 60 workload { quadratic {} } "
      "operation { kind: replica_step bytes: 16384 datagram_bytes: 512 replica { age_max: 3 } } "
      "link { delay_ms { fixed: 0.1 } loss { random { p: 0.3 } } }");
  EXPECT_GT(measure(record, "drift.pair"), 0);
  EXPECT_NEAR(measure(record, "drift.missed"), 0.3, 0.03);
  EXPECT_LE(measure(record, "age.max"), 3);
  EXPECT_GT(measure(record, "age.refreshed"), 0);
  EXPECT_GE(record.rounds.back().drift_pair, 0);
}

TEST(Run, EndsWithTheRoundAfterItsTime) {
  const RunRecord record = record_of(
      "ranks: 2 rounds: 1000 duration_ms: 20 operation { bytes: 4096 } link { delay_ms { fixed: 1 "
      "} }");
  EXPECT_LT(record.rounds.size(), 20u);
  EXPECT_GE(record.simulated_ns, 20'000'000);
}

TEST(Run, WithoutContentsPacketsAreTheSameAndResultsAreNotKnown) {
  const std::string rest =
      "ranks: 4 rounds: 3 operation { bytes: 262144 } topology { star {} } link { tier: uplink "
      "rate_mbps: 10000 delay_ms { fixed: 0.05 } } ";
  const RunRecord core = record_of(rest);
  const RunRecord counted = record_of("contents: false " + rest);
  EXPECT_EQ(core.trace_hash, counted.trace_hash);
  EXPECT_EQ(core.rounds[2].expected, counted.rounds[2].expected);
  EXPECT_LT(counted.rounds[2].error_mean_square, 0) << "not known";
  const RunRecord tcp = record_of("endpoint: tcp_ring " + rest);
  EXPECT_EQ(tcp.rounds[2].arrived, tcp.rounds[2].expected);
}

TEST(Run, WhatCannotBeHadIsSaid) {
  const auto replica =
      run(scenario_of("operation { kind: replica_step } link { delay_ms { fixed: 1 } }"), 1);
  ASSERT_FALSE(replica.ok());
  EXPECT_NE(std::string(replica.status().text()).find("workload"), std::string::npos);
  const auto gpt = run(scenario_of("workload { gpt {} }"), 1);
  ASSERT_FALSE(gpt.ok());
  EXPECT_EQ(gpt.status().code(), StatusCode::kUnsupported);
}

TEST(Run, AFailedCallFailsTheRunUnlessTheScenarioExpectsIt) {
  const std::string text =
      "ranks: 4 rounds: 5 operation { bytes: 65536 delivery { kind: exact deadline_ms: 200 } } "
      "link { delay_ms { fixed: 1 } } crash { rank: 3 from_round: 2 } ";
  const auto record = run(scenario_of(text), 1);
  ASSERT_TRUE(record.ok()) << record.status().c_str();
  EXPECT_FALSE(record->passed());
  const CheckRecord& failed_calls = record->checks.at(19);
  EXPECT_EQ(failed_calls.id, "i20");
  EXPECT_EQ(failed_calls.verdict, Verdict::failed);
  EXPECT_NE(failed_calls.first_failure.find("round 2, all_reduce"), std::string::npos)
      << failed_calls.first_failure;
  const RunRecord expected = record_of(text + "checkers { skip: \"i20\" }");
  EXPECT_GT(measure(expected, "failed_calls"), 0);
  // Two of five rounds were whole.
  EXPECT_EQ(expected.round_ms.size(), 2u);
  EXPECT_NEAR(measure(expected, "goodput_gbps"),
              2 * 8 * 65536.0 / static_cast<double>(expected.simulated_ns), 1e-9);
}

TEST(Run, StopsWhenToldTo) {
  const std::atomic<bool> stop = true;
  const auto record = run(
      scenario_of(
          "ranks: 8 rounds: 100000 operation { bytes: 65536 } link { delay_ms { fixed: 0.1 } }"),
      1, {.stop = &stop});
  ASSERT_FALSE(record.ok());
  EXPECT_EQ(record.status().code(), StatusCode::kCancelled);
}

TEST(Run, TellsEveryRound) {
  std::uint32_t rounds = 0;
  RunOptions options;
  options.progress = [&](std::uint32_t done, std::int64_t) { EXPECT_EQ(done, ++rounds); };
  ASSERT_TRUE(run(scenario_of(kLossy), 1, options).ok());
  EXPECT_EQ(rounds, 6u);
}

}  // namespace
}  // namespace leeway::sim
