#include "run/drift_probe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "estimate/drift.h"
#include "run/percentile.h"

namespace leeway::sim {
namespace {

constexpr std::size_t kBatches = 20;

std::vector<std::size_t> spread_evenly(schedule::Shard shard, std::size_t samples) {
  const std::size_t count = std::min(samples, shard.count);
  std::vector<std::size_t> elements;
  for (std::size_t i = 0; i < count; ++i)
    elements.push_back(shard.offset + i * shard.count / count);
  return elements;
}

std::size_t sample_count(const scenario::Scenario& scenario, std::size_t elements) {
  const auto shards = schedule::ShardMap::even(elements, static_cast<int>(scenario.ranks()));
  std::size_t count = 0;
  for (std::uint32_t rank = 0; rank < scenario.ranks(); ++rank) {
    count += spread_evenly(shards[static_cast<Rank>(rank)],
                           scenario.operation().replica().drift_samples())
                 .size();
  }
  return count;
}

double mean_of(std::span<const double> values) {
  if (values.empty()) return kUnknown;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Returns the standard error of the mean of `rounds`. Rounds depend on each other through the ages
// of copies. So the error is estimated from means of batches that are long compared with any age.
double standard_error(std::span<const double> rounds) {
  const std::size_t length = rounds.size() / kBatches;
  if (length == 0) return kUnknown;
  std::vector<double> means;
  for (std::size_t batch = 0; batch < kBatches; ++batch)
    means.push_back(mean_of(rounds.subspan(batch * length, length)));
  const double mean = mean_of(means);
  double squares = 0;
  for (const double value : means) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (kBatches - 1) / kBatches);
}

}  // namespace

DriftProbe::DriftProbe(const scenario::Scenario& scenario, std::size_t elements)
    : ranks_(scenario.ranks()),
      first_round_(scenario.rounds() / 10),
      meter_(sample_count(scenario, elements),
             std::max<std::uint32_t>(2, scenario.operation().replica().drift_every())) {
  const auto shards = schedule::ShardMap::even(elements, static_cast<int>(ranks_));
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const auto owner = static_cast<Rank>(rank);
    for (const auto element :
         spread_evenly(shards[owner], scenario.operation().replica().drift_samples())) {
      samples_.push_back({element, owner});
    }
  }
}

void DriftProbe::on_broadcast(std::uint32_t rank, std::uint32_t round,
                              std::span<const float> parameters, const ReplicaRank& replica) {
  Open& open = open_[round];
  if (open.values.empty()) {
    open.values.resize(ranks_);
    open.ages.resize(ranks_);
  }
  ++open.ranks;
  for (const Sampled& sample : samples_) {
    open.values[rank].push_back(parameters[sample.element]);
    open.ages[rank].push_back(replica.ages().age_of(sample.element));
  }
}

double DriftProbe::close(std::uint32_t round) {
  const auto at = open_.find(round);
  if (at == open_.end()) return -1;
  const Open open = std::move(at->second);
  open_.erase(at);
  if (open.ranks != ranks_) return -1;
  const bool counts = round >= first_round_;
  follow_steps(open, counts);
  const RoundSums sums = compare(open, counts);
  const double pair = sums.pairs == 0 ? -1 : sums.pair / static_cast<double>(sums.pairs);
  if (!counts) return pair;
  if (sums.pairs > 0) pair_by_round_.push_back(pair);
  if (sums.owners > 0) owner_by_round_.push_back(sums.owner / static_cast<double>(sums.owners));
  differ_ += sums.differ;
  pairs_ += sums.pairs;
  missed_ += sums.missed;
  copies_ += sums.owners;
  return pair;
}

void DriftProbe::follow_steps(const Open& open, bool counts) {
  std::vector<float> now;
  now.reserve(samples_.size());
  for (std::size_t i = 0; i < samples_.size(); ++i)
    now.push_back(open.values[samples_[i].owner][i]);
  if (counts && !owners_before_.empty()) {
    steps_.resize(now.size());
    for (std::size_t i = 0; i < now.size(); ++i) steps_[i] = now[i] - owners_before_[i];
    meter_.add_step(steps_);
  }
  owners_before_ = std::move(now);
}

DriftProbe::RoundSums DriftProbe::compare(const Open& open, bool counts) {
  RoundSums sums;
  for (std::size_t i = 0; i < samples_.size(); ++i) compare_sample(open, i, counts, sums);
  return sums;
}

// Adds sampled element `i` to the sums. Let d be a copy's distance to the owner's value, 0 if
// fresh. For n copies, the sum of (d_a - d_b)^2 over all pairs a < b is n sum d^2 - (sum d)^2.
void DriftProbe::compare_sample(const Open& open, std::size_t i, bool counts, RoundSums& sums) {
  const Rank owner = samples_[i].owner;
  double sum = 0;
  double squares = 0;
  std::fill(of_age_.begin(), of_age_.end(), 0);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (rank == owner) continue;
    const double distance = static_cast<double>(open.values[rank][i]) - open.values[owner][i];
    sum += distance;
    squares += distance * distance;
    const std::uint32_t age = open.ages[rank][i];
    if (age >= of_age_.size()) of_age_.resize(age + 1, 0);
    ++of_age_[age];
    if (counts && age != 0) meter_.add_gap(distance * distance);
  }
  const std::uint64_t copies = ranks_ - 1;
  sums.owner += squares;
  sums.owners += copies;
  sums.pair += static_cast<double>(copies) * squares - sum * sum;
  sums.pairs += copies * (copies - 1) / 2;
  sums.differ += copies * (copies - 1) / 2;
  for (const std::uint64_t count : of_age_) sums.differ -= count * (count - (count > 0)) / 2;
  sums.missed += copies - of_age_[0];
}

std::vector<Measure> DriftProbe::measures() const {
  if (copies_ == 0) return {};
  const estimate::DriftMeasurement measured = meter_.result();
  const double p = static_cast<double>(missed_) / static_cast<double>(copies_);
  std::vector<Measure> out = {{"drift.pair", mean_of(pair_by_round_)},
                              {"drift.pair_error", standard_error(pair_by_round_)},
                              {"drift.owner", mean_of(owner_by_round_)},
                              {"drift.owner_error", standard_error(owner_by_round_)},
                              {"drift.missed", p}};
  if (pairs_ > 0)
    out.push_back({"drift.differ", static_cast<double>(differ_) / static_cast<double>(pairs_)});
  if (p >= 1) return out;
  const estimate::DriftModel model = estimate::independent_drift(p);
  const double variance = measured.windows > 0 ? measured.step_variance : kUnknown;
  const double mean = measured.windows > 0 ? measured.step_mean_square : kUnknown;
  const double gap = measured.gaps > 0 ? measured.gap : kUnknown;
  out.push_back({"drift.pair_predicted", model.pair.of(variance, mean)});
  out.push_back({"drift.pair_predicted_gap", estimate::pair_drift_from_gap(p, measured.gap)});
  out.push_back({"drift.owner_predicted", model.owner.of(variance, mean)});
  out.push_back({"drift.differ_predicted", model.differ});
  out.push_back({"drift.step_variance", variance});
  out.push_back({"drift.step_mean_square", mean});
  out.push_back({"drift.gap_mean_square", gap});
  return out;
}

}  // namespace leeway::sim
