// Run records that look like a simulation's, for tests of reports. The numbers follow simple
// formulas of round, seed and loss, with noise from a fixed generator.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/random_stream.h"
#include "report/cell_record.h"
#include "scenario/parse.h"
#include "scenario/sweep.h"

namespace leeway::sim {

struct MadeUp {
  double loss = 0.1;
  double error_factor = 1;  // scales the estimator's error
  std::uint32_t rounds = 40;
  std::uint32_t ranks = 16;
  bool trains = true;   // the workload has a loss
  bool breaks = false;  // an invariant fails
};

inline double noise(RandomStream& stream) {
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(stream.u64() >> 11) * 0x1p-53;
  return sum - 6;
}

inline RoundRecord made_up_round(const MadeUp& what, std::uint32_t number, std::int64_t begin_ns,
                                 RandomStream& stream) {
  RoundRecord round;
  round.round = number;
  round.begin_ns = begin_ns;
  round.first_submit_ns = begin_ns + 5'000'000;
  const double tail = number % 37 == 36 ? 3.5 : 1;
  const double round_ms = tail * 8 * (1 + 3 * what.loss) * std::exp(0.08 * noise(stream));
  round.end_ns = round.first_submit_ns + static_cast<std::int64_t>(round_ms * 1e6);
  round.call_ns_max = round.end_ns - round.first_submit_ns;
  round.call_ns_median = round.call_ns_max * 9 / 10;
  round.live_ranks = what.ranks;
  round.deadline_cuts = tail > 1 ? 3 : 0;
  round.expected = 20'000;
  const double share = std::clamp(1 - what.loss + 0.005 * noise(stream), 0.0, 1.0);
  round.arrived_first = static_cast<std::uint64_t>(share * 20'000);
  round.arrived = (20'000 + round.arrived_first) / 2;
  round.bytes_sent = 30'000'000;
  round.contributors_mean = what.ranks * share;
  round.contributors_min = static_cast<std::uint32_t>(what.ranks * share * 0.7);
  round.value_mean_square = 0.8;
  round.error_mean_square =
      0.8 * what.error_factor * (0.002 + what.loss / what.ranks) * std::exp(0.15 * noise(stream));
  if (what.trains && number % 5 == 0) {
    round.loss = 1 + 3 * std::exp(-0.02 * number) + what.loss * what.error_factor * 0.2 +
                 0.02 * noise(stream);
  }
  return round;
}

inline LinkRecord made_up_link(const std::string& name, double loss, double busy,
                               RandomStream& stream) {
  LinkRecord link;
  link.name = name;
  const std::uint64_t offered = 90'000 + stream.below(20'000);
  link.counters.offered = {offered, offered / 40, 0};
  const auto lost = static_cast<std::uint64_t>(static_cast<double>(offered) * loss);
  link.counters.lost = {lost, lost / 40, 0};
  link.counters.passed = {offered - lost, offered / 40 - lost / 40, 0};
  link.counters.queue_full = lost / 3;
  link.counters.marked = lost / 10;
  link.counters.bytes_passed = link.counters.passed[0] * 1500;
  link.counters.queue_bytes_max = 1'900'000;
  link.utilisation = busy;
  return link;
}

inline void add_measures(RunRecord& run, const MadeUp& what, RandomStream& stream) {
  std::vector<double> sorted = run.round_ms;
  std::sort(sorted.begin(), sorted.end());
  const double jitter = 1 + 0.02 * noise(stream);
  run.measures = {
      {"round_ms.p50", sorted[sorted.size() / 2]},
      {"round_ms.p99", sorted[sorted.size() * 99 / 100]},
      {"loss", what.loss / 2 * jitter},
      {"loss_first_pass", what.loss * jitter},
      {"goodput_gbps", 2.4 * (1 - what.loss) * jitter},
      {"error.nmse", what.error_factor * (0.002 + what.loss / what.ranks) * jitter},
      {"jain", 1 - 0.05 * what.loss * jitter},
  };
  if (what.trains) {
    run.measures.push_back({"workload.loss", 1.05 + 0.2 * what.loss * what.error_factor * jitter});
  }
}

inline RunRecord made_up_run(const MadeUp& what, std::uint64_t seed) {
  RandomStream stream(seed, static_cast<std::uint32_t>(what.loss * 1000), Purpose::loss);
  RunRecord run;
  run.seed = seed;
  std::int64_t now_ns = 0;
  for (std::uint32_t i = 0; i < what.rounds; ++i) {
    run.rounds.push_back(made_up_round(what, i, now_ns, stream));
    const RoundRecord& round = run.rounds.back();
    run.round_ms.push_back(static_cast<double>(round.end_ns - round.first_submit_ns) / 1e6);
    for (std::uint32_t rank = 0; rank < what.ranks; ++rank) {
      run.call_ms.push_back(run.round_ms.back() * (0.8 + 0.2 * rank / what.ranks));
    }
    now_ns = round.end_ns;
  }
  for (std::uint32_t rank = 0; rank < what.ranks; ++rank) {
    const double worse = rank == 7 ? 2 : 1;
    const std::string number = std::to_string(rank);
    run.links.push_back(
        made_up_link("uplink " + number, what.loss * worse, 0.3 + 0.04 * rank, stream));
    run.links.push_back(made_up_link("downlink " + number, what.loss / 10, 0.2, stream));
  }
  run.network.sent = {run.rounds.size() * 20'000, 9'000, 0};
  run.network.delivered = {run.rounds.size() * 18'000, 8'800, 0};
  run.network.lost = {run.rounds.size() * 2'000, 200, 0};
  run.checks = {
      {"i1", "conservation: sent = delivered + lost + under way", Verdict::passed, 240'123, 0, ""},
      {"i3", "the report is exact", Verdict::passed, run.rounds.size() * what.ranks, 0, ""},
      {"i8", "pacing: bytes in any 10 ms below the cap", Verdict::skipped, 0, 0,
       "named in checkers.skip"},
      {"i10", "estimators are unbiased", Verdict::not_applicable, 0, 0, "needs 10,000 rounds"},
  };
  if (what.breaks) {
    run.checks[1] = {"i3",
                     "the report is exact",
                     Verdict::failed,
                     640,
                     2,
                     "round 12, rank 3, chunk 7: reported <4>, delivered 3 & late"};
  }
  add_measures(run, what, stream);
  run.simulated_ns = now_ns;
  run.packets = run.network.sent[0] + run.network.sent[1];
  run.events = run.packets * 2 + 1'000;
  run.trace_hash = stream.u64();
  return run;
}

// Sweeps five losses and three estimators, with three seeds.
inline constexpr const char* kSweepScenario =
    R"(# How far from the true average do lost packets leave the result?
name: "estimators"
description: "All-reduce of 1 MiB over 16 ranks, deadline 50 ms: loss against three estimators."

ranks: 16
seed { from: 1 count: 3 }
rounds: 100
operation { estimator: ratio delivery { deadline_ms: 50 } }
topology { star {} }
link { tier: uplink rate_mbps: 10000 loss { random { p: 0 } } }   # <script>alert(1)</script>

sweep { field: "link[0].loss.random.p" values: [0, 0.1, 0.2, 0.3, 0.4] }
sweep { field: "operation.estimator" texts: ["zero_fill", "ratio", "symmetric_ratio"] }
report {
  plot { x: "link[0].loss.random.p" y: "error.nmse" by: "operation.estimator" log_y: true }
  plot { x: "link[0].loss.random.p" y: "round_ms.p50" also_y: "round_ms.p99" by: "operation.estimator" }
  plot { x: "round_ms.p50" y: "workload.loss" by: "operation.estimator" }
}
)";

inline ReportInput made_up_sweep() {
  ReportInput input;
  input.scenario_text = kSweepScenario;
  input.scenario = *scenario::parse_text(kSweepScenario, "estimators.txtpb");
  const auto grid_cells = scenario::cells(input.scenario);
  for (const scenario::Cell& grid : *grid_cells) {
    MadeUp what;
    what.loss = grid.scenario.link(0).loss().random().p();
    what.error_factor = 8.0 / (1 << (2 * grid.scenario.operation().estimator()));
    what.rounds = 100;
    CellRecord cell{grid.index, grid.settings, {}};
    for (std::uint64_t seed = 1; seed <= 3; ++seed) cell.runs.push_back(made_up_run(what, seed));
    input.cells.push_back(std::move(cell));
  }
  input.command = "leeway sim estimators.txtpb --set link[0].loss.random.p=0.4 --seeds 2";
  input.version = "0.1.0";
  return input;
}

inline constexpr const char* kSingleScenario =
    "name: \"tail\"\ndescription: \"One cell.\"\nranks: 16\nrounds: 200\n"
    "link { loss { random { p: 0.05 } } }\n";

inline ReportInput made_up_single(std::uint32_t rounds, std::uint32_t seeds) {
  ReportInput input;
  input.scenario_text = kSingleScenario;
  input.scenario = *scenario::parse_text(kSingleScenario, "tail.txtpb");
  input.cells.push_back({0, {}, {}});
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    MadeUp what;
    what.loss = 0.05;
    what.rounds = rounds;
    input.cells[0].runs.push_back(made_up_run(what, seed));
  }
  input.command = "leeway sim tail.txtpb --seeds 1";
  input.version = "0.1.0";
  return input;
}

}  // namespace leeway::sim
