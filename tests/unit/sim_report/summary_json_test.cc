#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/trace_hash.h"
#include "report/report.h"
#include "unit/sim_report/made_up_runs.h"

namespace leeway::sim {
namespace {

using Json = nlohmann::json;

RunRecord small_run(std::uint64_t seed, double p99, std::vector<double> round_ms) {
  RunRecord run;
  run.seed = seed;
  run.measures = {{"round_ms.p99", p99}, {"jain", std::nan("")}};
  run.round_ms = std::move(round_ms);
  run.checks = {{"i1", "conservation", Verdict::passed, 10, 0, ""},
                {"i8", "pacing", Verdict::skipped, 0, 0, "named in checkers.skip"}};
  run.packets = 100;
  run.events = 300;
  run.simulated_ns = 1'500'000;
  run.trace_hash = 0xa0 + seed;
  return run;
}

ReportInput two_seeds() {
  ReportInput input;
  input.scenario.set_name("small");
  input.scenario_text = "name: \"small\"";
  input.command = "leeway sim small.txtpb --seeds 1";
  input.version = "0.1.0";
  input.cells = {{0,
                  {{"ranks", "8"}, {"operation.codec", "int8:clip"}, {"x", "1e3"}},
                  {small_run(2, 6, {5, 6}), small_run(1, 2, {1, 2, 3, 4})}}};
  return input;
}

TEST(SummaryJson, MeasuresOverSeeds) {
  const Json cell = Json::parse(summary_json(two_seeds()))["cells"][0];
  const Json& p99 = cell["measures"]["round_ms.p99"];
  EXPECT_EQ(p99["count"], 2);
  EXPECT_EQ(p99["mean"], 4);
  EXPECT_DOUBLE_EQ(p99["deviation"], std::sqrt(8.0));
  EXPECT_DOUBLE_EQ(p99["standard_error"], 2);
  EXPECT_EQ(p99["min"], 2);
  EXPECT_EQ(p99["max"], 6);
  EXPECT_TRUE(cell["measures"]["jain"]["mean"].is_null());
  EXPECT_EQ(cell["measures"]["jain"]["count"], 0);
}

TEST(SummaryJson, PercentilesArePooledOverSeeds) {
  const Json cell = Json::parse(summary_json(two_seeds()))["cells"][0];
  const Json& pooled = cell["pooled"]["round_ms"];  // samples are 1 2 3 4 5 6
  EXPECT_EQ(pooled["count"], 6);
  EXPECT_EQ(pooled["p50"], 3);
  EXPECT_EQ(pooled["p90"], 6);
  EXPECT_EQ(pooled["p99"], 6);
  EXPECT_EQ(pooled["p99.9"], 6);
  EXPECT_EQ(pooled["mean"], 3.5);
  EXPECT_EQ(cell["pooled"]["call_ms"]["count"], 0);
  EXPECT_TRUE(cell["pooled"]["call_ms"]["p50"].is_null());
}

TEST(SummaryJson, SettingsSeedsHashesTotals) {
  const Json json = Json::parse(summary_json(two_seeds()));
  const Json& cell = json["cells"][0];
  EXPECT_EQ(cell["settings"]["ranks"], 8);
  EXPECT_EQ(cell["settings"]["operation.codec"], "int8:clip");
  EXPECT_EQ(cell["settings"]["x"], 1000);
  EXPECT_EQ(cell["seeds"], (Json{1, 2}));
  EXPECT_EQ(cell["trace_hashes"], (Json{"00000000000000a1", "00000000000000a2"}));
  EXPECT_EQ(cell["packets"], 200);
  EXPECT_EQ(cell["events"], 600);
  EXPECT_EQ(cell["simulated_ms"], 3);
  EXPECT_EQ(json["totals"]["runs"], 2);
  EXPECT_EQ(json["format"], "leeway-sim-summary");
  EXPECT_EQ(json["version"], kSummaryFormat);
  EXPECT_EQ(json["verdict"], "passed");
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["scenario"], "name: \"small\"");
}

TEST(SummaryJson, OneTraceHashInTheOrderOfGridAndSeeds) {
  ReportInput input = two_seeds();
  CellRecord other = input.cells[0];
  other.index = 1;
  for (RunRecord& run : other.runs) run.trace_hash += 0x100;
  input.cells.insert(input.cells.begin(), other);
  TraceHash expected;
  for (const std::uint64_t hash : {0xa1, 0xa2, 0x1a1, 0x1a2}) expected.add_run(hash);
  EXPECT_EQ(trace_hash_of(input.cells), expected.value());
  EXPECT_EQ(Json::parse(summary_json(input))["trace_hash"], hash_text(expected.value()));
}

TEST(SummaryJson, AFailedCheckNamesItsSeedAndCell) {
  ReportInput input = two_seeds();
  CellRecord other = input.cells[0];
  other.index = 1;
  input.cells.push_back(other);
  RunRecord& broken = input.cells[1].runs[0];
  ASSERT_EQ(broken.seed, 2u);
  broken.checks[0].verdict = Verdict::failed;
  broken.checks[0].failures = 3;
  broken.checks[0].first_failure = "link 0>1, 5 ms: 1 packet too many";
  const Json json = Json::parse(summary_json(input));
  EXPECT_EQ(json["verdict"], "failed");
  EXPECT_EQ(json["cells"][0]["verdict"], "passed");
  EXPECT_EQ(json["cells"][1]["verdict"], "failed");
  const Json& check = json["checks"][0];
  EXPECT_EQ(check["id"], "i1");
  EXPECT_EQ(check["verdict"], "failed");
  EXPECT_EQ(check["checked"], 40);
  EXPECT_EQ(check["failures"], 3);
  EXPECT_EQ(check["failed_runs"], 1);
  EXPECT_EQ(check["seed"], 2);
  EXPECT_EQ(check["cell"], 1);
  EXPECT_EQ(check["first_failure"], "link 0>1, 5 ms: 1 packet too many");
  EXPECT_EQ(json["checks"][1]["verdict"], "skipped");
  EXPECT_EQ(json["checks"][1]["reason"], "named in checkers.skip");
  EXPECT_EQ(json["cells"][0]["checks"][0]["verdict"], "passed");
}

TEST(SummaryJson, CellsWithoutARunAreLeftOut) {
  ReportInput input = two_seeds();
  input.cells.push_back({1, {}, {}});
  input.complete = false;
  const Json json = Json::parse(summary_json(input));
  EXPECT_EQ(json["cells"].size(), 1u);
  EXPECT_EQ(json["complete"], false);
}

TEST(SummaryJson, TextThatIsNoUnicodeIsWritten) {
  ReportInput input = two_seeds();
  input.scenario_text = "# \xff\xfe";
  EXPECT_TRUE(Json::accept(summary_json(input)));
}

}  // namespace
}  // namespace leeway::sim
