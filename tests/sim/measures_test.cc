// No figure of the simulator is 0 because data are missing; an unknown figure is NaN. Each figure
// must have a scenario here in which it is known and not 0.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "report/report.h"
#include "unit/sim_run/record_of.h"

namespace leeway::sim {
namespace {

// A scenario, and the figures that it tests. A figure is tested by the case that has the longest
// entry with which the figure's name begins.
struct Case {
  std::vector<std::string> figures;  // names, or beginnings that end in '.'
  std::string scenario;
};

const std::string kLossy = "link { delay_ms { fixed: 0.1 } loss { random { p: 0.2 } } } ";

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{"round_ms.", "call_ms.", "rounds", "step_ms.", "goodput_gbps", "loss", "loss_first_pass",
        "bytes_per_round", "contributors.", "error.", "jain", "workload.expected", "workload.bias",
        "workload.error_mean_square"},
       "ranks: 4 rounds: 20 operation { bytes: 65536 estimator: zero_fill } "
       "workload { synthetic { mean: 1 rank_deviation: 1 } } " +
           kLossy},
      {{"failed_calls"},
       "ranks: 4 rounds: 4 operation { bytes: 4096 delivery { kind: exact deadline_ms: 50 } } "
       "crash { rank: 3 from_round: 2 } checkers { skip: \"i20\" } " +
           kLossy},
      {{"deadline_cuts"},
       "ranks: 4 rounds: 4 operation { bytes: 262144 delivery { deadline_ms: 2 } } "
       "link { rate_mbps: 100 delay_ms { fixed: 0.5 } } checkers { skip: \"i20\" }"},
      {{"compute.threshold_ms", "compute.rounds", "compute.drop_rate", "compute.samples_per_s",
        "compute.speedup", "compute.overhead_ms", "compute.step_ms.", "compute.drop_rate_predicted",
        "compute.speedup_predicted", "compute.speedup_best_predicted",
        "compute.threshold_ms_best_predicted"},
       "ranks: 4 rounds: 20 operation { bytes: 4096 } compute { drop_compute { micro_batches: 12 "
       "micro_batch_ms: 10 threshold_ms: 150 } } " +
           kLossy},
      {{"compute.speedup_searched"},
       "ranks: 4 rounds: 30 operation { bytes: 4096 } compute { drop_compute { micro_batches: 12 "
       "micro_batch_ms: 10 threshold_auto { window_rounds: 8 adopt_after_rounds: 2 } } } " +
           kLossy},
      {{"cross[0].goodput_mbps"},
       "ranks: 3 rounds: 10 operation { bytes: 65536 } cross_traffic { from: 0 to: 1 on_off { "
       "rate_mbps: 100 } } link { rate_mbps: 1000 delay_ms { fixed: 1 } }"},
      {{"workload.distance_to_optimum", "workload.objective_gap"},
       "ranks: 4 rounds: 20 operation { bytes: 4096 } workload { quadratic {} } " + kLossy},
      {{"drift.", "age."},
       "ranks: 4 rounds: 60 operation { kind: replica_step bytes: 65536 replica { age_max: 2 "
       "drift_every: 4 deadline_ms: 50 } } workload { quadratic {} } " +
           kLossy},
      {{"communicator[0].opened", "communicator[0].calls", "communicator[0].aborted",
        "communicator[0].failed"},
       "ranks: 3 rounds: 6 operation { bytes: 4096 delivery { deadline_ms: 200 } } communicator { "
       "operation { bytes: 262144 delivery { kind: exact deadline_ms: 1000 } } rounds: 3 abort { "
       "rank: 1 from_round: 1 after_ms: 0.05 } } link { rate_mbps: 100 delay_ms { fixed: 0.2 } }"},
  };
  return all;
}

const Case* case_of(const std::string& figure) {
  const Case* best = nullptr;
  std::size_t length = 0;
  for (const Case& one : cases()) {
    for (const std::string& name : one.figures) {
      const bool fits = name.back() == '.' ? figure.starts_with(name) : figure == name;
      if (fits && name.size() > length) {
        best = &one;
        length = name.size();
      }
    }
  }
  return best;
}

const std::map<const Case*, RunRecord>& records() {
  static const auto made = [] {
    std::map<const Case*, RunRecord> all;
    for (const Case& one : cases()) all.emplace(&one, record_of(one.scenario));
    return all;
  }();
  return made;
}

TEST(Measures, EachHasAScenarioInWhichItIsNotZero) {
  std::set<std::string> names;
  for (const auto& [one, record] : records()) {
    for (const Measure& measure : record.measures) names.insert(measure.name);
  }
  for (const std::string& name : names) {
    const Case* const one = case_of(name);
    ASSERT_NE(one, nullptr) << name << " is new: give it a scenario in which it is not 0";
    const double value = measure(records().at(one), name);
    EXPECT_TRUE(std::isfinite(value) && value != 0) << name << " is " << value;
  }
  for (const Case& one : cases()) {
    for (const std::string& figure : one.figures) {
      const auto at = names.lower_bound(figure);
      const bool known = at != names.end() && at->starts_with(figure);
      EXPECT_TRUE(known) << figure << " is measured by no run";
    }
  }
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

std::set<std::string> empty_columns(const std::string& csv) {
  std::istringstream stream(csv);
  std::string line;
  std::getline(stream, line);
  const std::vector<std::string> names = fields_of(line);
  std::set<std::string> empty(names.begin(), names.end());
  while (std::getline(stream, line)) {
    const std::vector<std::string> values = fields_of(line);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!values[i].empty() && values[i] != "0") empty.erase(names[i]);
    }
  }
  return empty;
}

// Links and queues that affect packets in many ways.
const std::string kIncast =
    "ranks: 6 rounds: 2 operation { bytes: 2097152 } topology { star {} } "
    "link { tier: uplink delay_ms { uniform { to: 0.3 } } duplicate { p: 0.05 } reorder { p: 0.05 "
    "} "
    "corrupt { p: 0.05 } loss { random { p: 0.05 } } } "
    "cross_traffic { from: 2 to: 3 on_off { rate_mbps: 20 } } ";
const std::string kRed = "red { min_bytes: 2000 max_bytes: 15000 }";

std::string incast_with(const std::string& queue, const std::string& more = "") {
  return kIncast + "link { tier: downlink rate_mbps: 100 queue { bytes: 20000 " + queue + " } } " +
         more;
}

TEST(Measures, EachColumnOfTheTablesIsFilledSomewhere) {
  std::vector<CellRecord> cells(1);
  for (const auto& [one, record] : records()) cells[0].runs.push_back(record);
  cells[0].runs.push_back(record_of(incast_with("trim {}")));
  cells[0].runs.push_back(record_of(incast_with(kRed)));
  cells[0].runs.push_back(record_of(incast_with("ecn_at: 5000", "congestion { control: wan }")));
  EXPECT_EQ(empty_columns(rounds_csv(cells)), (std::set<std::string>{"cell"}));
  EXPECT_EQ(empty_columns(links_csv(cells)), (std::set<std::string>{"cell"}));
}

// Links lose a fifth of the packets, and three of an owner's four contributions come over links.
// zero_fill does not make up for losses. So with a mean of 1 the bias is about -0.2 * 3/4 = -0.15.
TEST(Measures, ZeroFillIsBiasedByWhatIsLost) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 50 operation { bytes: 65536 estimator: zero_fill } "
      "workload { synthetic { mean: 1 } } " +
      kLossy);
  EXPECT_NEAR(measure(record, "workload.bias"), -0.15, 0.03);
  EXPECT_GT(measure(record, "workload.error_mean_square"), 0.25);
  for (const char* kind : {"reduce_scatter", "reduce"}) {
    const RunRecord other = record_of(
        std::string("ranks: 4 rounds: 50 operation { bytes: 65536 estimator: zero_fill kind: ") +
        kind + " } workload { synthetic { mean: 1 } } " + kLossy);
    EXPECT_NEAR(measure(other, "workload.bias"), -0.15, 0.04) << kind;
  }
}

// ---- unknown figures are NaN --------------------------------------------------------------------

double value_or_absent(const RunRecord& record, const std::string& name) {
  for (const Measure& measure : record.measures) {
    if (measure.name == name) return measure.value;
  }
  return std::nan("");
}

TEST(Measures, WithoutDataNothingIsKnown) {
  // No call reduces anything, and no time passes.
  const RunRecord idle = record_of("ranks: 1 rounds: 2 operation { kind: barrier }");
  for (const char* name : {"loss", "loss_first_pass", "goodput_gbps", "jain", "workload.bias",
                           "workload.error_mean_square", "error.nmse", "contributors.mean"})
    EXPECT_TRUE(std::isnan(value_or_absent(idle, name))) << name;
  // drift.pair is measured between two ranks that do not own an element. Two ranks are too few.
  const RunRecord two = record_of(
      "ranks: 2 rounds: 20 operation { kind: replica_step bytes: 4096 } workload { quadratic {} "
      "} " +
      kLossy);
  EXPECT_TRUE(std::isnan(value_or_absent(two, "drift.pair")));
  EXPECT_GT(value_or_absent(two, "drift.owner"), 0);
  // Every call fails, so there is no time of a call and no goodput.
  const RunRecord failing = record_of(
      "ranks: 3 rounds: 3 operation { bytes: 4096 delivery { kind: exact deadline_ms: 20 } } "
      "link { loss { random { p: 1 } } } checkers { skip: \"i20\" }");
  EXPECT_EQ(value_or_absent(failing, "failed_calls"), 9);
  EXPECT_TRUE(std::isnan(value_or_absent(failing, "round_ms.p50")));
  EXPECT_TRUE(std::isnan(value_or_absent(failing, "call_ms.p50")));
  EXPECT_EQ(value_or_absent(failing, "goodput_gbps"), 0);
  std::vector<CellRecord> cells(1);
  cells[0].runs.push_back(idle);
  EXPECT_TRUE(empty_columns(rounds_csv(cells)).contains("contributors_min"));
}

}  // namespace
}  // namespace leeway::sim
