// Tests runs whose ranks have several lanes, over which calls are sliced.
#include "run/lane_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "unit/sim_run/record_of.h"

namespace leeway::sim {
namespace {

constexpr const char* kLoses = "link { tier: downlink loss { random { p: 0.05 } } } ";

std::string with_lanes(int lanes, const std::string& operation, const std::string& more = "") {
  return "ranks: 4 rounds: 6 topology { star {} } link { tier: uplink rate_mbps: 1000 delay_ms { "
         "fixed: 0.1 } } operation { " +
         (lanes == 1 ? "" : "lanes: " + std::to_string(lanes) + " slice_bytes: 8192 ") + operation +
         " } " + more;
}

void expect_looked_at(const RunRecord& record, const std::string& id) {
  for (const CheckRecord& check : record.checks) {
    if (check.id != id) continue;
    EXPECT_EQ(check.verdict, Verdict::passed) << id << " " << check.first_failure;
    EXPECT_GT(check.checked, 0u) << id;
  }
}

TEST(LaneCalls, AnExactCallGivesTheAverageWithTheBytesOfOneLane) {
  const std::string exact = "bytes: 240000 delivery { kind: exact deadline_ms: 60000 }";
  const RunRecord one = record_of(with_lanes(1, exact));
  const RunRecord four = record_of(with_lanes(4, exact));
  ASSERT_EQ(four.rounds.size(), 6u);
  for (const RoundRecord& round : four.rounds) {
    EXPECT_EQ(round.failed_calls, 0u);
    EXPECT_EQ(round.arrived, round.expected);
    EXPECT_LT(round.error_mean_square, 1e-12 * round.value_mean_square);
  }
  const auto bytes = [](const RunRecord& record) {
    double sum = 0;
    for (const LinkRecord& link : record.links)
      sum += static_cast<double>(link.counters.bytes_passed);
    return sum;
  };
  EXPECT_NEAR(bytes(four) / bytes(one), 1.0, 0.05);
  for (const char* const id : {"i2", "i3", "i4", "i5", "i6", "i8"}) expect_looked_at(four, id);
}

TEST(LaneCalls, TheSameSeedIsTheSameRun) {
  const std::string text = with_lanes(3, "bytes: 60000 delivery { deadline_ms: 2000 }", kLoses);
  const RunRecord first = record_of(text, 3);
  const RunRecord again = record_of(text, 3);
  EXPECT_EQ(first.trace_hash, again.trace_hash);
  EXPECT_EQ(first.simulated_ns, again.simulated_ns);
  EXPECT_NE(first.trace_hash, record_of(text, 4).trace_hash);
}

TEST(LaneCalls, EveryKindAndClassKeepsItsPromises) {
  for (const char* const kind : {"all_reduce", "all_gather"}) {
    for (const char* const delivery : {"exact", "bounded", "best_effort"}) {
      if (std::string(kind) == "all_gather" && std::string(delivery) != "exact") continue;
      for (const char* const control : {"none", "wan"}) {
        SCOPED_TRACE(std::string(kind) + " " + delivery + " " + control);
        const RunRecord record =
            record_of(with_lanes(3,
                                 std::string("bytes: 120000 kind: ") + kind +
                                     " delivery { kind: " + delivery + " deadline_ms: 60000 }",
                                 std::string(kLoses) + "congestion { control: " + control + " }"),
                      7);
        EXPECT_EQ(measure(record, "failed_calls"), 0);
        EXPECT_GT(measure(record, "loss_first_pass"), 0.01);
        EXPECT_EQ(measure(record, "loss") > 0, std::string(delivery) == "best_effort");
      }
    }
  }
}

TEST(LaneCalls, CodecsResidualsAndControlsAreCutToo) {
  for (const char* const more : {"codec: \"nvfp4\" error_feedback: true",
                                 "codec: \"int8\" estimator: augmented control_variate: previous",
                                 "codec: \"native\"", "codec: \"automatic\""}) {
    SCOPED_TRACE(more);
    const RunRecord record = record_of(with_lanes(
        2, std::string("bytes: 120000 delivery { kind: exact deadline_ms: 60000 } ") + more,
        kLoses));
    EXPECT_EQ(measure(record, "failed_calls"), 0);
  }
}

TEST(LaneCalls, ADeadRankIsMissingFromThenOn) {
  const std::string crash = "crash { rank: 2 from_round: 2 }";
  const RunRecord lossy = record_of(
      with_lanes(3,
                 "bytes: 60000 peer_timeout_ms: 300 delivery { deadline_ms: 20000 } spread: "
                 "best_effort",
                 crash));
  ASSERT_EQ(lossy.rounds.size(), 6u);
  EXPECT_EQ(measure(lossy, "failed_calls"), 0);
  EXPECT_EQ(lossy.rounds[5].live_ranks, 3u);
  EXPECT_LT(lossy.rounds[5].call_ns_max, 1'000'000'000) << "nobody waits for it any more";
  const RunRecord exact = record_of(
      with_lanes(3, "bytes: 60000 peer_timeout_ms: 300 delivery { kind: exact deadline_ms: 20000 }",
                 crash + " checkers { skip: \"i20\" }"));
  EXPECT_EQ(exact.rounds[1].failed_calls, 0u);
  EXPECT_EQ(exact.rounds[5].failed_calls, 3u);
}

TEST(LaneCalls, AStoppedRankGoesOnOnAllLanes) {
  const RunRecord record =
      record_of(with_lanes(2, "bytes: 60000 delivery { kind: exact deadline_ms: 60000 }",
                           std::string(kLoses) + "pause { rank: 1 from_round: 2 for_ms: 500 }"));
  EXPECT_EQ(measure(record, "failed_calls"), 0);
}

// No call may fail although injected faults differ between lanes, and messages come before calls.
TEST(LaneCalls, MessagesAndFurtherCommunicatorsGoByTheFirstLane) {
  const RunRecord record = record_of(with_lanes(
      2,
      "bytes: 60000 messages_first: 2 inject: \"loss=0.05\" delivery { kind: exact deadline_ms: "
      "60000 }",
      "communicator { ranks: \"0-2\" rounds: 3 operation { bytes: 4000 } }"));
  EXPECT_EQ(measure(record, "failed_calls"), 0);
  EXPECT_GT(measure(record, "loss_first_pass"), 0.02);
}

// All lanes of a rank share its line, so a paced call takes as long as on one lane.
TEST(LaneCalls, PacedLanesHaveTheRateOfOne) {
  const auto round_ms = [](int lanes) {
    const RunRecord record =
        record_of(with_lanes(lanes, "bytes: 1000000 delivery { kind: exact deadline_ms: 60000 }",
                             "congestion { control: fixed rate_mbps: 100 }"));
    std::vector<double> all = record.round_ms;
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  };
  // 1.5 MB and headers at 100 Mb/s take more than 120 ms.
  EXPECT_GT(round_ms(1), 120);
  EXPECT_NEAR(round_ms(4) / round_ms(1), 1.0, 0.1);
}

}  // namespace
}  // namespace leeway::sim
