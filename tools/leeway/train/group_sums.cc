#include "train/group_sums.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace leeway::tools::train {
namespace {

// Counts fit: a double holds integers up to 2^53 exactly.
double number(std::uint64_t count) {
  return static_cast<double>(count);
}
std::uint64_t count(double number) {
  return static_cast<std::uint64_t>(number);
}

std::array<double, kAgeBins> binned(const std::vector<std::uint64_t>& histogram) {
  std::array<double, kAgeBins> bins{};
  for (std::size_t age = 0; age < histogram.size(); ++age) {
    bins[std::min(age, kAgeBins - 1)] += number(histogram[age]);
  }
  return bins;
}

}  // namespace

GroupSums GroupSums::of(const Traffic& traffic, const std::optional<DriftReport>& drift) {
  GroupSums sums;
  auto* out = sums.values.begin();
  for (const std::uint64_t value :
       {traffic.packets_expected, traffic.packets_arrived_first, traffic.bytes_sent,
        traffic.elements_untouched, traffic.deadline_cuts}) {
    *out++ = number(value);
  }
  if (!drift) return sums;
  for (const double value : {drift->pair_measured, drift->pair_predicted, drift->pair_predicted_gap,
                             drift->owner_measured, drift->owner_predicted, drift->age_mean,
                             number(drift->blocks_refreshed)}) {
    *out++ = value;
  }
  const auto bins = binned(drift->age_histogram);
  std::copy(bins.begin(), bins.end(), out);
  return sums;
}

void GroupSums::store(int ranks, bool has_drift, RunResult& result) const {
  const double expected = values[0];
  result.loss_observed = expected > 0 ? 1.0 - values[1] / expected : 0.0;
  result.bytes_sent = count(values[2]);
  result.elements_untouched = count(values[3]);
  result.deadline_cuts = count(values[4]);
  if (!has_drift) return;
  const auto drift = std::span(values).subspan(kTrafficFields, kDriftFields);
  DriftSummary& summary = result.drift.emplace();
  summary.pair_measured = drift[0] / ranks;
  summary.pair_predicted = drift[1] / ranks;
  summary.pair_predicted_gap = drift[2] / ranks;
  summary.owner_measured = drift[3] / ranks;
  summary.owner_predicted = drift[4] / ranks;
  summary.age_mean = drift[5] / ranks;
  summary.blocks_refreshed = count(drift[6]);
  const auto ages = std::span(values).subspan(kTrafficFields + kDriftFields);
  const double all_ages = std::accumulate(ages.begin(), ages.end(), 0.0);
  for (std::size_t age = 0; age < kAgeBins && all_ages > 0; ++age)
    summary.age_shares[age] = ages[age] / all_ages;
}

Status sum_over_group(Communicator& communicator, const Traffic& traffic,
                      const std::optional<DriftReport>& drift, RunResult& result) {
  GroupSums sums = GroupSums::of(traffic, drift);
  const auto summed = communicator.all_reduce(TensorView(std::span(sums.values)));
  if (!summed.ok()) return summed.status();
  sums.store(communicator.size(), drift.has_value(), result);
  if (!drift) return Status();

  std::int64_t age_max = drift->age_max_seen;
  CollectiveOptions take_max;
  take_max.op = ReduceOp::max;
  const auto maximum = communicator.all_reduce(TensorView(std::span(&age_max, 1)), take_max);
  if (!maximum.ok()) return maximum.status();
  result.drift->age_max_seen = static_cast<std::uint32_t>(age_max);
  return Status();
}

}  // namespace leeway::tools::train
