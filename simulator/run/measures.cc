#include "run/measures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "run/percentile.h"

namespace leeway::sim {
namespace {

constexpr std::array<std::pair<const char*, unsigned>, 6> kThousandths = {
    {{"p50", 500}, {"p90", 900}, {"p95", 950}, {"p99", 990}, {"p99.9", 999}, {"max", 1000}}};

double ratio(double part, double whole) {
  return whole == 0 ? kUnknown : part / whole;
}

// Returns the fairness index of Jain, Chiu and Hawe (1984) over n ranks: (sum x)^2 / (n sum x^2).
// Here x is the number of rounds that a rank finished, divided by the time that it spent in calls.
double jain_index(const RoundBook& book) {
  double sum = 0;
  double squares = 0;
  std::size_t ranks = 0;
  for (std::size_t rank = 0; rank < book.busy_ns().size(); ++rank) {
    if (book.busy_ns()[rank] <= 0) continue;
    const double rate = book.rounds_done()[rank] / static_cast<double>(book.busy_ns()[rank]);
    sum += rate;
    squares += rate * rate;
    ++ranks;
  }
  return ratio(sum * sum, static_cast<double>(ranks) * squares);
}

struct Totals {
  std::uint64_t expected = 0, arrived = 0, arrived_first = 0, bytes_sent = 0, cuts = 0, failed = 0;
  double contributors = 0;
  double error = 0, value = 0;
  // Numbers of rounds: those with a reduction, with a known error, and without a failed call.
  std::size_t reductions = 0, errors = 0, whole = 0;
};

Totals totals_of(const std::vector<RoundRecord>& rounds) {
  Totals totals;
  for (const RoundRecord& round : rounds) {
    totals.expected += round.expected;
    totals.arrived += round.arrived;
    totals.arrived_first += round.arrived_first;
    totals.bytes_sent += round.bytes_sent;
    totals.cuts += round.deadline_cuts;
    totals.failed += round.failed_calls;
    totals.whole += round.failed_calls == 0;
    if (round.contributors_mean >= 0) {
      totals.contributors += round.contributors_mean;
      ++totals.reductions;
    }
    if (round.error_mean_square < 0) continue;
    totals.error += round.error_mean_square;
    totals.value += round.value_mean_square;
    ++totals.errors;
  }
  return totals;
}

}  // namespace

void append_percentiles(const std::string& name, std::vector<double> values,
                        std::vector<Measure>& out) {
  if (values.empty()) return;
  out.push_back({name + ".mean", std::accumulate(values.begin(), values.end(), 0.0) /
                                     static_cast<double>(values.size())});
  std::sort(values.begin(), values.end());
  for (const auto& [suffix, part] : kThousandths) {
    out.push_back({name + "." + suffix, percentile(values, part)});
  }
}

std::vector<Measure> call_measures(const RunRecord& record, const RoundBook& book,
                                   std::uint64_t tensor_bytes) {
  std::vector<Measure> out;
  append_percentiles("round_ms", record.round_ms, out);
  append_percentiles("call_ms", record.call_ms, out);
  const auto rounds = static_cast<double>(record.rounds.size());
  const auto simulated_ns = static_cast<double>(record.simulated_ns);
  const Totals totals = totals_of(record.rounds);
  const auto expected = static_cast<double>(totals.expected);
  out.push_back({"rounds", rounds});
  out.push_back({"step_ms.mean", ratio(simulated_ns / 1e6, rounds)});
  const double whole_bits = 8.0 * static_cast<double>(tensor_bytes * totals.whole);
  out.push_back({"goodput_gbps", ratio(whole_bits, simulated_ns)});
  out.push_back({"loss", 1 - ratio(static_cast<double>(totals.arrived), expected)});
  out.push_back(
      {"loss_first_pass", 1 - ratio(static_cast<double>(totals.arrived_first), expected)});
  out.push_back({"bytes_per_round", ratio(static_cast<double>(totals.bytes_sent), rounds)});
  out.push_back({"deadline_cuts", static_cast<double>(totals.cuts)});
  out.push_back({"failed_calls", static_cast<double>(totals.failed)});
  if (totals.reductions > 0) {
    out.push_back(
        {"contributors.mean", ratio(totals.contributors, static_cast<double>(totals.reductions))});
  }
  if (totals.errors > 0) {
    out.push_back({"error.mean_square", ratio(totals.error, static_cast<double>(totals.errors))});
    out.push_back({"error.nmse", ratio(totals.error, totals.value)});
  }
  out.push_back({"jain", jain_index(book)});
  return out;
}

std::vector<Measure> age_measures(const std::vector<ReplicaRank>& replicas) {
  double ages = 0;
  double blocks = 0;
  double refreshed = 0;
  std::uint32_t age_max = 0;
  for (const ReplicaRank& replica : replicas) {
    const auto& counts = replica.ages().age_histogram();
    const auto seen = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    ages += replica.ages().age_mean() * static_cast<double>(seen);
    blocks += static_cast<double>(seen);
    refreshed += static_cast<double>(replica.ages().blocks_refreshed());
    age_max = std::max(age_max, replica.ages().age_max_seen());
  }
  if (blocks == 0) return {};
  return {{"age.mean", ages / blocks},
          {"age.max", static_cast<double>(age_max)},
          {"age.refreshed", refreshed}};
}

std::vector<LinkRecord> link_records(const Topology& topology, const Network& network,
                                     std::int64_t simulated_ns) {
  std::vector<LinkRecord> records;
  for (LinkId link = 0; link < topology.links(); ++link) {
    const LinkCounters& counters = network.link_counters(link);
    if (std::accumulate(counters.offered.begin(), counters.offered.end(), std::uint64_t{0}) == 0)
      continue;
    const LinkProperties& properties = topology.properties(link);
    const double capacity =
        properties.limited ? static_cast<double>(properties.queue.bits_per_second) * 1e-9 : 0;
    records.push_back({topology.name(link), counters,
                       ratio(8.0 * static_cast<double>(counters.bytes_passed),
                             capacity * static_cast<double>(simulated_ns))});
  }
  return records;
}

void append(std::vector<Measure>& measures, std::vector<Measure> more) {
  std::move(more.begin(), more.end(), std::back_inserter(measures));
}

}  // namespace leeway::sim
