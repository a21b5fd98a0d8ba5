// Tests runs with several communicators over the same processes.
#include <gtest/gtest.h>

#include <string>

#include "unit/sim_run/record_of.h"

namespace leeway::sim {
namespace {

constexpr const char* kGroup =
    "ranks: 4 rounds: 6 operation { bytes: 16384 } link { delay_ms { fixed: 0.2 } loss { random { "
    "p: 0.05 } } } ";

TEST(RunCommunicators, EveryMemberMakesAllItsCallsBesideTheFirstOne) {
  const RunRecord record = record_of(
      std::string(kGroup) +
          "communicator { ranks: \"1-3\" split: true rounds: 5 operation { bytes: 4096 delivery { "
          "kind: exact } } } communicator { reversed: true from_round: 2 open_ms: 5 again: 1 "
          "rounds: 3 operation { kind: all_gather bytes: 4096 } }",
      1);
  EXPECT_TRUE(record.passed());
  EXPECT_EQ(record.rounds.size(), 6u);
  EXPECT_EQ(measure(record, "communicator[0].opened"), 3);
  EXPECT_EQ(measure(record, "communicator[0].calls"), 15);
  EXPECT_EQ(measure(record, "communicator[0].failed"), 0);
  EXPECT_EQ(measure(record, "communicator[1].opened"), 8) << "each of four joins twice";
  EXPECT_EQ(measure(record, "communicator[1].calls"), 24);
}

TEST(RunCommunicators, AnAbortEndsItForTheRankAndNothingElsewhere) {
  const RunRecord record =
      record_of(std::string(kGroup) +
                    "communicator { rounds: 20 operation { bytes: 65536 delivery { kind: exact } } "
                    "abort { rank: 2 from_round: 1 after_ms: 0.1 } }",
                1);
  EXPECT_TRUE(record.passed());
  EXPECT_GE(measure(record, "communicator[0].aborted"), 1);
  EXPECT_GT(measure(record, "communicator[0].failed"), 0);
  for (const RoundRecord& round : record.rounds) EXPECT_EQ(round.failed_calls, 0u);
}

// The first abort makes messages to and from its rank fail with kPeerLost. The rest of the call is
// still open, and the second abort must cancel it.
TEST(RunCommunicators, AnAbortCancelsWhatAnotherOnesAbortHasLeftOpen) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const RunRecord record = record_of(
        "ranks: 4 rounds: 1 operation { bytes: 4 } communicator { idle_ms: 0.1 rounds: 6 operation "
        "{ kind: messages bytes: 4 messages_max: 16 tags: 4 any_source: true } abort { rank: 1 "
        "from_round: 1 after_ms: 0.05 } abort { rank: 2 after_ms: 0.5 } }",
        seed);
    EXPECT_EQ(measure(record, "communicator[0].aborted"), 4) << seed;
  }
}

TEST(RunCommunicators, ADeadProcessIsDeadToAllOfThem) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 6 operation { bytes: 16384 delivery { deadline_ms: 20000 } spread: "
      "best_effort peer_timeout_ms: 300 } link { delay_ms { fixed: 0.2 } } "
      "crash { rank: 3 from_round: 1 } communicator { from_round: 4 rounds: 2 operation { bytes: "
      "4096 delivery { deadline_ms: 20000 } spread: best_effort } }",
      1);
  EXPECT_TRUE(record.passed());
  EXPECT_EQ(measure(record, "communicator[0].opened"), 3);
  EXPECT_LT(static_cast<double>(record.simulated_ns) / 1e6, 20000) << "nobody waits for it";
}

TEST(RunCommunicators, AProcessThatJoinsLateLives) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 1 operation { bytes: 4096 peer_timeout_ms: 300 } link { delay_ms { fixed: "
      "0.2 } } communicator { open_ms: 2000 rounds: 2 operation { bytes: 4096 delivery { kind: "
      "exact deadline_ms: 5000 } } }",
      1);
  EXPECT_TRUE(record.passed());
  EXPECT_EQ(measure(record, "communicator[0].calls"), 8);
  EXPECT_EQ(measure(record, "communicator[0].failed"), 0);
}

// Reduced from seed 12948 of the swarm. Some processes have aborted and wait in the next
// communicator for others, which still serve the dead process in the former one. They must not be
// taken for dead.
TEST(RunCommunicators, AProcessThatIsHeldUpInTheFormerOneLives) {
  const RunRecord record = record_of(
      "ranks: 6 rounds: 1 operation { bytes: 4 peer_timeout_ms: 968.989 } link { delay_ms { "
      "pareto_normal { mean: 78.089 } } } crash { rank: 5 } communicator { again: 2 operation { "
      "kind: broadcast bytes: 4 delivery { deadline_ms: 5000 } } abort { rank: 1 } }",
      12948);
  EXPECT_TRUE(record.passed());
}

}  // namespace
}  // namespace leeway::sim
