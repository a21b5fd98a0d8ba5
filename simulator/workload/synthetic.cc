#include "workload/synthetic.h"

#include <algorithm>
#include <limits>

#include "base/contracts.h"
#include "workload/lane_sum.h"
#include "workload/normal_field.h"

namespace leeway::sim {
namespace {

constexpr std::uint32_t kMeanRound = NormalField::kFirstConstant;

}  // namespace

SyntheticWorkload::SyntheticWorkload(const Options& options, std::uint64_t seed)
    : options_(options), seed_(seed) {
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
    const float own = options.rank_deviation * NormalField(seed, rank, kMeanRound).at(0);
    rank_means_.push_back(options.mean + own);
  }
  const double sum = lane_sum(rank_means_.size(), [&](std::size_t i) { return rank_means_[i]; });
  expected_ = sum / options.ranks;
}

void SyntheticWorkload::gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) {
  gradient_sum(rank, round, {}, out);
}

void SyntheticWorkload::gradient_sum(std::uint32_t rank, std::uint32_t round,
                                     MicroBatches micro_batches, std::span<float> out) {
  LEEWAY_ASSERT(out.size() == options_.elements);
  std::ranges::fill(out, static_cast<float>(micro_batches.completed) * rank_means_[rank]);
  if (options_.deviation == 0) return;
  NormalField(seed_, rank, round).add_to(out, options_.deviation * noise_of_sum(micro_batches));
}

void SyntheticWorkload::update(std::uint32_t, std::uint32_t, std::size_t,
                               std::span<const float> mean, std::span<float>) {
  errors_ += lane_sum(mean.size(), [&](std::size_t i) { return mean[i] - expected_; });
  squares_ += lane_sum(mean.size(), [&](std::size_t i) {
    const double error = mean[i] - expected_;
    return error * error;
  });
  results_ += mean.size();
}

double SyntheticWorkload::loss(std::uint32_t) {
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<Measure> SyntheticWorkload::measures() {
  if (results_ == 0) return {};
  const auto count = static_cast<double>(results_);
  return {{"workload.expected", expected_},
          {"workload.bias", errors_ / count},
          {"workload.error_mean_square", squares_ / count}};
}

}  // namespace leeway::sim
