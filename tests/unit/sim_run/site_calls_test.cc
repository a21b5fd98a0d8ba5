// Tests runs whose ranks lie in sites and make calls by sites.
#include "run/site_calls.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/sim_run/record_of.h"

namespace leeway::sim {
namespace {

// Two sites of three ranks. Between them packets take longer and are lost.
std::string in_sites(const std::string& operation, const std::string& more = "",
                     int site_ranks = 3) {
  return "ranks: 6 rounds: 6 group { name: \"here\" ranks: \"0-2\" } group { name: \"there\" "
         "ranks: "
         "\"3-\" } topology { regions { names: [\"here\", \"there\"] rtt_ms: [0.2, 20, 20, 0.2] } "
         "} "
         "operation { site_ranks: " +
         std::to_string(site_ranks) + " " + operation + " } " + more;
}

constexpr const char* kFabricLoses =
    "link { tier: fabric between: \"here\" and: \"there\" loss { random { p: 0.1 } } } ";

void expect_check_passed(const RunRecord& record, const std::string& id) {
  for (const CheckRecord& check : record.checks) {
    if (check.id != id) continue;
    EXPECT_EQ(check.verdict, Verdict::passed) << id;
    EXPECT_GT(check.checked, 0u) << id;
  }
}

// Returns the bytes on the line between the sites, in one direction.
std::uint64_t on_the_line(const RunRecord& record) {
  for (const LinkRecord& link : record.links) {
    if (link.name.find("here") != std::string::npos && link.name.find("there") != std::string::npos)
      return link.counters.bytes_passed;
  }
  ADD_FAILURE() << "nothing went over the line";
  return 0;
}

TEST(SiteCalls, AnExactCallGivesTheAverageAndSendsLessOverTheLine) {
  const std::string exact = "bytes: 240000 delivery { kind: exact deadline_ms: 60000 }";
  const RunRecord by_sites = record_of(in_sites(exact));
  const RunRecord straight = record_of(in_sites(exact, "", 0));
  ASSERT_EQ(by_sites.rounds.size(), 6u);
  for (const RoundRecord& round : by_sites.rounds) {
    EXPECT_EQ(round.failed_calls, 0u);
    EXPECT_EQ(round.arrived, round.expected);
    EXPECT_LT(round.error_mean_square, 1e-12 * round.value_mean_square);
  }
  const auto bytes = static_cast<double>(on_the_line(by_sites));
  EXPECT_NEAR(bytes / static_cast<double>(on_the_line(straight)), 1.0 / 3, 0.07);
  for (const char* const id : {"i2", "i3", "i4", "i5", "i6"}) expect_check_passed(by_sites, id);
}

TEST(SiteCalls, TheSameSeedIsTheSameRun) {
  const std::string text = in_sites("bytes: 60000 delivery { deadline_ms: 2000 }", kFabricLoses);
  const RunRecord first = record_of(text, 3);
  const RunRecord again = record_of(text, 3);
  EXPECT_EQ(first.trace_hash, again.trace_hash);
  EXPECT_EQ(first.simulated_ns, again.simulated_ns);
  EXPECT_NE(first.trace_hash, record_of(text, 4).trace_hash);
}

TEST(SiteCalls, EveryKindAndClassKeepsItsPromises) {
  for (const char* const kind : {"all_reduce", "reduce_scatter", "all_gather"}) {
    for (const char* const delivery : {"exact", "bounded", "best_effort"}) {
      if (std::string(kind) == "all_gather" && std::string(delivery) != "exact") continue;
      SCOPED_TRACE(std::string(kind) + " " + delivery);
      const RunRecord record =
          record_of(in_sites(std::string("bytes: 120000 kind: ") + kind +
                                 " delivery { kind: " + delivery + " deadline_ms: 60000 }",
                             kFabricLoses),
                    7);
      EXPECT_EQ(measure(record, "failed_calls"), 0);
      EXPECT_GT(measure(record, "loss_first_pass"), 0.01);
      EXPECT_EQ(measure(record, "loss") > 0, std::string(delivery) == "best_effort");
    }
  }
}

TEST(SiteCalls, CodecsResidualsAndPiecesWork) {
  for (const char* const more :
       {"codec: \"nvfp4\" error_feedback: true",
        "codec: \"int8\" estimator: augmented "
        "control_variate: previous",
        "codec: \"native\" site_piece_bytes: 20000", "codec: \"automatic\""}) {
    SCOPED_TRACE(more);
    const RunRecord record = record_of(
        in_sites(std::string("bytes: 120000 delivery { kind: exact deadline_ms: 60000 } ") + more,
                 kFabricLoses));
    EXPECT_EQ(measure(record, "failed_calls"), 0);
  }
}

TEST(SiteCalls, ADeadRankIsMissingFromThenOn) {
  const std::string crash = "crash { rank: 4 from_round: 2 }";
  const RunRecord lossy = record_of(in_sites(
      "bytes: 60000 peer_timeout_ms: 300 delivery { deadline_ms: 20000 } spread: best_effort",
      crash));
  ASSERT_EQ(lossy.rounds.size(), 6u);
  EXPECT_EQ(measure(lossy, "failed_calls"), 0);
  EXPECT_EQ(lossy.rounds[5].live_ranks, 5u);
  EXPECT_LT(lossy.rounds[5].call_ns_max, 1'000'000'000) << "nobody waits for it any more";
  const RunRecord exact = record_of(
      in_sites("bytes: 60000 peer_timeout_ms: 300 delivery { kind: exact deadline_ms: 20000 }",
               crash + " checkers { skip: \"i20\" }"));
  EXPECT_EQ(exact.rounds[1].failed_calls, 0u);
  EXPECT_EQ(exact.rounds[5].failed_calls, 5u);
}

TEST(SiteCalls, AStoppedRankGoesOn) {
  const RunRecord record = record_of(
      in_sites("bytes: 60000 delivery { kind: exact deadline_ms: 60000 }",
               std::string(kFabricLoses) + "pause { rank: 1 from_round: 2 for_ms: 500 }"));
  EXPECT_EQ(measure(record, "failed_calls"), 0);
}

// Calls that the library does not make by sites must stay as they are. Messages come before calls
// by sites.
TEST(SiteCalls, OtherCallsGoAsTheyDo) {
  const RunRecord record = record_of(in_sites(
      "bytes: 60000 confirm_use: true owner_weights: true delivery { deadline_ms: 2000 }"));
  expect_check_passed(record, "i17");
  EXPECT_EQ(measure(record, "failed_calls"), 0);
  const RunRecord messages = record_of(
      in_sites("bytes: 6000 messages_first: 2 delivery { kind: exact deadline_ms: 2000 }"));
  EXPECT_EQ(measure(messages, "failed_calls"), 0);
  expect_check_passed(messages, "i16");
}

}  // namespace
}  // namespace leeway::sim
