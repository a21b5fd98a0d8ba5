#include "train/group_sums.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace leeway::tools::train {
namespace {

// Converts a count to a double, which is exact up to 2^53.
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

std::array<double, GroupSums::kTrafficFields> fields_of(const Traffic& traffic) {
  return {number(traffic.packets_expected), number(traffic.packets_arrived_first),
          number(traffic.bytes_sent), number(traffic.elements_untouched),
          number(traffic.deadline_cuts)};
}

// The first field is 1, so that its sum counts the ranks that measured noise. Ranks without a shard
// measure none.
std::array<double, GroupSums::kNoiseFields> fields_of(const estimate::NoiseEstimate& noise) {
  return {1.0,
          noise.gradient_mean_square,
          noise.dispersion,
          noise.quantisation_variance,
          noise.loss_variance,
          noise.gain,
          noise.gradient_error};
}

std::array<double, GroupSums::kDriftFields> fields_of(const DriftReport& drift) {
  return {drift.pair_measured,           drift.pair_predicted,  drift.pair_predicted_gap,
          drift.owner_measured,          drift.owner_predicted, drift.age_mean,
          number(drift.blocks_refreshed)};
}

template <typename Fields>
double* put(const Fields& fields, double* out) {
  return std::copy(fields.begin(), fields.end(), out);
}

void store_noise(std::span<const double> sums, RunResult& result) {
  const double ranks = sums[0];
  if (ranks == 0) return;
  // The last field is an error. Its mean over ranks is used, because all ranks have about the same
  // error from the same batches.
  result.noise = estimate::NoiseEstimate{.gradient_mean_square = sums[1] / ranks,
                                         .dispersion = sums[2] / ranks,
                                         .quantisation_variance = sums[3] / ranks,
                                         .loss_variance = sums[4] / ranks,
                                         .gain = sums[5] / ranks,
                                         .gradient_error = sums[6] / ranks};
}

}  // namespace

GroupSums GroupSums::of(const RankFigures& figures) {
  GroupSums sums;
  double* out = put(fields_of(figures.traffic), sums.values.data());
  if (figures.noise) put(fields_of(*figures.noise), out);
  out += kNoiseFields;
  if (!figures.drift) return sums;
  out = put(fields_of(*figures.drift), out);
  put(binned(figures.drift->age_histogram), out);
  return sums;
}

void GroupSums::store(int ranks, bool has_drift, RunResult& result) const {
  const double expected = values[0];
  result.loss_observed = expected > 0 ? 1.0 - values[1] / expected : 0.0;
  result.bytes_sent = count(values[2]);
  result.elements_untouched = count(values[3]);
  result.deadline_cuts = count(values[4]);
  store_noise(std::span(values).subspan(kTrafficFields, kNoiseFields), result);
  if (!has_drift) return;
  const auto drift = std::span(values).subspan(kTrafficFields + kNoiseFields, kDriftFields);
  DriftSummary& summary = result.drift.emplace();
  summary.pair_measured = drift[0] / ranks;
  summary.pair_predicted = drift[1] / ranks;
  summary.pair_predicted_gap = drift[2] / ranks;
  summary.owner_measured = drift[3] / ranks;
  summary.owner_predicted = drift[4] / ranks;
  summary.age_mean = drift[5] / ranks;
  summary.blocks_refreshed = count(drift[6]);
  const auto ages = std::span(values).subspan(kTrafficFields + kNoiseFields + kDriftFields);
  const double all_ages = std::accumulate(ages.begin(), ages.end(), 0.0);
  for (std::size_t age = 0; age < kAgeBins && all_ages > 0; ++age)
    summary.age_shares[age] = ages[age] / all_ages;
}

Status sum_over_group(Communicator& communicator, const RankFigures& figures, RunResult& result) {
  GroupSums sums = GroupSums::of(figures);
  const auto summed = communicator.all_reduce(TensorView(std::span(sums.values)));
  if (!summed.ok()) return summed.status();
  sums.store(communicator.size(), figures.drift.has_value(), result);
  if (!figures.drift) return Status();

  std::int64_t age_max = figures.drift->age_max_seen;
  CollectiveOptions take_max;
  take_max.op = ReduceOp::max;
  const auto maximum = communicator.all_reduce(TensorView(std::span(&age_max, 1)), take_max);
  if (!maximum.ok()) return maximum.status();
  result.drift->age_max_seen = static_cast<std::uint32_t>(age_max);
  return Status();
}

}  // namespace leeway::tools::train
