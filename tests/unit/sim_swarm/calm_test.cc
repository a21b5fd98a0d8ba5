// Tests which faults calm_from_round ends, and which stay.
#include <gtest/gtest.h>

#include <string>

#include "run/run.h"
#include "scenario/parse.h"

namespace leeway::sim {
namespace {

RunRecord run_text(const std::string& text) {
  const auto scenario = scenario::parse_text(text, "calm_test");
  EXPECT_TRUE(scenario.ok()) << scenario.status().c_str();
  auto record = run(*scenario, 1);
  EXPECT_TRUE(record.ok()) << record.status().c_str();
  return std::move(*record);
}

const CheckRecord& liveness(const RunRecord& record) {
  return record.checks[8];
}

// Makes four ranks and ten rounds, calm from the fourth on.
std::string calm(const std::string& operation, const std::string& rest) {
  return "ranks: 4 rounds: 10 calm_from_round: 4 operation { bytes: 32768 " + operation + " } " +
         rest;
}

// Returns how many packets were missing in rounds that all ranks began in the calm.
std::uint64_t missing_in_calm(const RunRecord& record) {
  std::uint64_t missing = 0;
  for (const RoundRecord& round : record.rounds) {
    if (round.round >= 5) missing += round.expected - round.arrived;
  }
  return missing;
}

TEST(Calm, LinksLoseNothingAnyMore) {
  const RunRecord record =
      run_text(calm("delivery { deadline_ms: 50 }",
                    "link { loss { random { p: 0.3 } window { from_ms: 0.1 to_ms: 1e8 } } }"));
  EXPECT_LT(record.rounds[2].arrived, record.rounds[2].expected);
  EXPECT_EQ(missing_in_calm(record), 0u);
  EXPECT_EQ(liveness(record).verdict, Verdict::passed) << liveness(record).first_failure;
  EXPECT_GT(liveness(record).checked, 0u);
}

TEST(Calm, SharedFatesEndToo) {
  const RunRecord record =
      run_text(calm("", "link { loss { random { p: 0.5 } } shared_fate: true }"));
  EXPECT_EQ(missing_in_calm(record), 0u);
}

TEST(Calm, NothingIsCopiedHeldBackOrDamaged) {
  const char* const kHarm =
      "link { duplicate { p: 1 } reorder { p: 0.5 by_ms: 1 } corrupt { p: 0.2 } }";
  const auto copied = [](const RunRecord& record) {
    return record.network.copied[0] + record.network.copied[1];
  };
  const RunRecord rough =
      run_text(std::string("ranks: 4 rounds: 4 operation { bytes: 32768 } ") + kHarm);
  const RunRecord record = run_text(calm("", kHarm));
  EXPECT_GT(copied(rough), 0u);
  EXPECT_LT(copied(record), 2 * copied(rough));
  EXPECT_EQ(missing_in_calm(record), 0u);
}

TEST(Calm, PausesAndPartitionsEndAtOnce) {
  const RunRecord record = run_text(calm("delivery { deadline_ms: 20 }",
                                         "pause { rank: 2 from_round: 2 for_ms: 1e6 } "
                                         "partition { between: \"0\" and: \"3\" from_round: 1 }"));
  EXPECT_LT(record.rounds[3].arrived, record.rounds[3].expected);
  EXPECT_EQ(missing_in_calm(record), 0u);
  EXPECT_EQ(liveness(record).verdict, Verdict::passed) << liveness(record).first_failure;
}

TEST(Calm, NoFaultBeginsInIt) {
  const RunRecord record = run_text(calm("",
                                         "compute { constant_ms: 1 } "
                                         "crash { rank: 2 from_round: 3 after_ms: 1.9 }"));
  EXPECT_EQ(record.rounds.back().live_ranks, 4u);
}

TEST(Calm, InjectedFaultsEnd) {
  const RunRecord record = run_text(calm("inject: \"loss=0.3,seed=2\"", ""));
  EXPECT_LT(record.rounds[2].arrived, record.rounds[2].expected);
  EXPECT_EQ(missing_in_calm(record), 0u);
}

TEST(Calm, WithoutItLivenessIsNotLookedAt) {
  EXPECT_EQ(liveness(run_text("rounds: 3 operation { bytes: 4096 }")).verdict,
            Verdict::not_applicable);
  EXPECT_EQ(liveness(run_text(calm("", "crash { rank: 2 }"))).verdict, Verdict::not_applicable);
}

TEST(Calm, RulesAreNamed) {
  const auto refused = [](const char* text) {
    const auto scenario = scenario::parse_text(text, "f");
    return scenario.ok() ? std::string() : std::string(scenario.status().text());
  };
  EXPECT_NE(refused("rounds: 4 calm_from_round: 4").find("calm_from_round is 4; allowed is below"),
            std::string::npos);
  EXPECT_NE(refused("rounds: 9 calm_from_round: 4 pause { rank: 1 for_ms: 1 from_round: 4 }")
                .find("pause[0].from_round is 4; allowed is below calm_from_round"),
            std::string::npos);
  EXPECT_NE(
      refused("rounds: 9 calm_from_round: 4 crash { rank: 1 from_round: 5 }").find("crash[0]"),
      std::string::npos);
  EXPECT_NE(refused("rounds: 9 calm_from_round: 0 partition { to: \"1\" }").find("partition[0]"),
            std::string::npos);
}

}  // namespace
}  // namespace leeway::sim
