// The full record of one run (one cell of the grid with one seed). Reports are made from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "network/network.h"
#include "workload/workload.h"

namespace leeway::sim {

// One round of all ranks, in simulated time: from its first submission to its last return.
struct RoundRecord {
  std::uint32_t round = 0;
  std::int64_t begin_ns = 0;  // when the first rank began to compute
  std::int64_t first_submit_ns = 0;
  std::int64_t end_ns = 0;       // when the last live rank returned
  std::int64_t call_ns_max = 0;  // longest time from a rank's submission to its return
  std::int64_t call_ns_median = 0;
  std::uint32_t live_ranks = 0;
  std::uint32_t failed_calls = 0;
  std::uint32_t deadline_cuts = 0;
  std::uint64_t expected = 0;  // data packets of all ranks and both halves
  std::uint64_t arrived = 0;
  std::uint64_t arrived_first = 0;
  std::uint64_t bytes_sent = 0;
  // Mean number of contributors; negative if no call of the round reduced anything.
  double contributors_mean = -1;
  std::uint32_t contributors_min = 0;  // valid if contributors_mean is not negative
  // Squared distance of the result from the loss-free average of the round's contributions, and
  // square of that average. Both are means over elements and live ranks. Negative if unknown (no
  // contents).
  double error_mean_square = -1;
  double value_mean_square = -1;
  double drift_pair =
      -1;  // mean squared distance of two ranks' parameters after the round; negative: no model
  double loss = -1;  // Workload::loss of rank 0; negative if it was not evaluated in this round
};

struct LinkRecord {
  std::string name;
  LinkCounters counters;
  // Bits that passed, as a fraction of what the link's rate allows in the simulated time. NaN for
  // unlimited links.
  double utilisation = 0;
};

enum class Verdict : std::uint8_t { passed = 0, failed = 1, skipped = 2, not_applicable = 3 };

// Result of one invariant I1 .. I21.
struct CheckRecord {
  std::string id;     // "i1"
  std::string title;  // "conservation: sent = delivered + lost + under way"
  Verdict verdict = Verdict::not_applicable;
  std::uint64_t checked = 0;  // how many times it was checked
  std::uint64_t failures = 0;
  // text about the first violation, or why the invariant is skipped or does not apply
  std::string first_failure;
};

struct RunRecord {
  std::uint64_t seed = 0;
  std::vector<RoundRecord> rounds;
  std::vector<LinkRecord> links;  // links that a packet came to
  NetworkCounters network;
  std::vector<CheckRecord> checks;
  // "round_ms.p50", "round_ms.p99", "loss", "loss_first_pass", "goodput_gbps", "error.nmse",
  // "jain", "workload....", "drift....", "age....". One flat list in a fixed order.
  std::vector<Measure> measures;
  // Duration of each round without a failed call. A cell's percentiles pool these over seeds.
  std::vector<double> round_ms;
  // Time that a rank spent in its calls of a round, if none of them failed; at most kCallsKept
  // evenly chosen values.
  std::vector<double> call_ms;
  std::int64_t simulated_ns = 0;
  std::uint64_t events = 0;
  std::uint64_t packets = 0;
  std::uint64_t trace_hash = 0;

  bool passed() const {
    for (const CheckRecord& check : checks) {
      if (check.verdict == Verdict::failed) return false;
    }
    return true;
  }
};

}  // namespace leeway::sim
