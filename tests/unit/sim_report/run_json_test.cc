#include "report/run_json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "unit/sim_report/made_up_runs.h"

namespace leeway::sim {
namespace {

using Json = nlohmann::json;

RunRecord awkward_run() {
  RunRecord run = made_up_run({.rounds = 3, .breaks = true}, 1'000'000'000'000'000);
  run.trace_hash = UINT64_MAX;
  run.events = UINT64_MAX;
  run.rounds[0].begin_ns = INT64_MIN;
  run.rounds[1].error_mean_square = 1.0 / 3;
  run.rounds[2].loss = 5e-324;
  run.rounds[2].drift_pair = 0.1;  // and fields that made-up runs leave at their defaults
  run.rounds[2].failed_calls = UINT32_MAX;
  run.links[0].name = "eu>us \"quoted\" \\ ";
  run.links[0].counters.offered = {UINT64_MAX, 1, 2};
  run.links[0].counters.copied = {3, 4, 5};
  run.links[0].counters.queue_early = 6;
  run.links[0].counters.trimmed = 7;
  run.links[0].counters.corrupted = 8;
  run.links[0].counters.reordered = 9;
  run.network.copied = {10, 11, 12};
  run.measures.push_back({"workload.infinite", std::numeric_limits<double>::infinity()});
  run.measures.push_back({"workload.minus", -std::numeric_limits<double>::infinity()});
  return run;
}

TEST(RunJson, ReadsBackToTheLastBit) {
  const RunRecord run = awkward_run();
  const std::string text = run_json(run);
  const auto read = parse_run_json(text);
  ASSERT_TRUE(read.ok()) << read.status().c_str();
  EXPECT_EQ(run_json(*read), text);  // the text that was read is written again
  EXPECT_EQ(read->seed, run.seed);
  EXPECT_EQ(read->trace_hash, run.trace_hash);
  EXPECT_EQ(read->events, run.events);
  EXPECT_EQ(read->packets, run.packets);
  EXPECT_EQ(read->simulated_ns, run.simulated_ns);
  EXPECT_EQ(read->round_ms, run.round_ms);
  EXPECT_EQ(read->call_ms, run.call_ms);
  EXPECT_EQ(read->network.sent, run.network.sent);
  EXPECT_EQ(read->network.copied, run.network.copied);
  EXPECT_EQ(read->network.delivered, run.network.delivered);
  EXPECT_EQ(read->network.lost, run.network.lost);
  ASSERT_EQ(read->checks.size(), run.checks.size());
  EXPECT_EQ(read->checks[1].verdict, Verdict::failed);
  EXPECT_EQ(read->checks[1].first_failure, run.checks[1].first_failure);
  ASSERT_EQ(read->measures.size(), run.measures.size());
  EXPECT_EQ(read->measures.back().value, -std::numeric_limits<double>::infinity());
  EXPECT_FALSE(read->passed());
}

TEST(RunJson, EveryFieldOfARoundAndALink) {
  const RunRecord run = awkward_run();
  const RunRecord read = *parse_run_json(run_json(run));
  ASSERT_EQ(read.rounds.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const RoundRecord& a = run.rounds[i];
    const RoundRecord& b = read.rounds[i];
    const auto fields = [](const RoundRecord& r) {
      return std::tie(r.round, r.begin_ns, r.first_submit_ns, r.end_ns, r.call_ns_max,
                      r.call_ns_median, r.live_ranks, r.failed_calls, r.deadline_cuts, r.expected,
                      r.arrived, r.arrived_first, r.bytes_sent, r.contributors_mean,
                      r.contributors_min, r.error_mean_square, r.value_mean_square, r.drift_pair,
                      r.loss);
    };
    EXPECT_EQ(fields(a), fields(b)) << "round " << i;
  }
  ASSERT_EQ(read.links.size(), run.links.size());
  for (std::size_t i = 0; i < read.links.size(); ++i) {
    const auto fields = [](const LinkRecord& l) {
      const LinkCounters& c = l.counters;
      return std::tie(l.name, l.utilisation, c.offered, c.passed, c.lost, c.copied, c.queue_full,
                      c.queue_early, c.marked, c.trimmed, c.corrupted, c.reordered, c.bytes_passed,
                      c.queue_bytes_max);
    };
    EXPECT_EQ(fields(run.links[i]), fields(read.links[i])) << "link " << i;
  }
}

TEST(RunJson, NotANumberStaysNone) {
  RunRecord run = made_up_run({.rounds = 1}, 1);
  run.rounds[0].loss = std::nan("");
  run.call_ms = {1, std::nan(""), 2};
  const auto read = parse_run_json(run_json(run));
  ASSERT_TRUE(read.ok()) << read.status().c_str();
  EXPECT_TRUE(std::isnan(read->rounds[0].loss));
  EXPECT_TRUE(std::isnan(read->call_ms.at(1)));
  EXPECT_EQ(read->call_ms.at(2), 2);
}

TEST(RunJson, TextsOfAFileSendTheTerminalNothingButText) {
  RunRecord run = made_up_run({.rounds = 1}, 1);
  run.checks = {{"i1", "\x1b]0;owned\x07", Verdict::failed, 1, 1, "\x1b[2J\nmade up"}};
  run.links.at(0).name = "up\x1b[31mlink";
  const auto read = parse_run_json(run_json(run));
  ASSERT_TRUE(read.ok()) << read.status().c_str();
  EXPECT_EQ(read->checks.at(0).title, "?]0;owned?");
  EXPECT_EQ(read->checks.at(0).first_failure, "?[2J?made up");
  EXPECT_EQ(read->links.at(0).name, "up?[31mlink");
}

TEST(RunJson, EmptyRun) {
  const auto read = parse_run_json(run_json({}));
  ASSERT_TRUE(read.ok()) << read.status().c_str();
  EXPECT_TRUE(read->rounds.empty());
  EXPECT_TRUE(read->passed());
}

TEST(ParseRunJson, EveryCutIsAnError) {
  const std::string text = run_json(made_up_run({.rounds = 1, .ranks = 1}, 1));
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    ASSERT_FALSE(parse_run_json(std::string_view(text).substr(0, size)).ok()) << size;
  }
}

std::string changed(const std::string& pointer, const Json& value) {
  Json json = Json::parse(run_json(made_up_run({.rounds = 2}, 1)));
  json[Json::json_pointer(pointer)] = value;
  return json.dump();
}

TEST(ParseRunJson, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(parse_run_json(changed("/events", 5)).ok());
  for (const auto& [pointer, value] : std::vector<std::pair<std::string, Json>>{
           {"/format", "leeway-sim-summary"},
           {"/version", kRunFormat + 1},
           {"/events", -1},
           {"/events", 0.5},
           {"/events", "5"},
           {"/trace_hash", "xyz"},
           {"/trace_hash", "123456789abcdef01"},
           {"/trace_hash", ""},
           {"/rounds/live_ranks/0", 4294967296},
           {"/rounds/live_ranks", {1}},
           {"/rounds/live_ranks", 7},
           {"/rounds/count", 1'000'000'000'000},
           {"/rounds/loss/0", "much"},
           {"/checks/verdict/0", "fine"},
           {"/links", nullptr},
           {"/network/sent", {1, 2}},
           {"/round_ms", {"a"}},
       }) {
    const auto read = parse_run_json(changed(pointer, value));
    ASSERT_FALSE(read.ok()) << pointer << " " << value;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(parse_run_json("[]").ok());
  EXPECT_FALSE(parse_run_json("nonsense").ok());
}

}  // namespace
}  // namespace leeway::sim
