#include "run/round_values.h"

#include <cstring>

#include "base/contracts.h"

namespace leeway::sim {

void RoundValues::add_contribution(std::span<const float> contribution, double weight) {
  if (sums_.empty()) sums_.assign(contribution.size(), 0.0);
  LEEWAY_ASSERT(sums_.size() == contribution.size());
  for (std::size_t i = 0; i < contribution.size(); ++i) sums_[i] += contribution[i];
  weight_ += weight;
}

void RoundValues::add_result(std::uint32_t rank, std::size_t offset,
                             std::span<const float> result) {
  if (result.empty()) return;
  for (Result& known : results_) {
    const bool same = known.offset == offset && known.values.size() == result.size() &&
                      std::memcmp(known.values.data(), result.data(), result.size_bytes()) == 0;
    if (!same) continue;
    known.ranks.push_back(rank);
    return;
  }
  results_.push_back({offset, {result.begin(), result.end()}, {rank}});
}

void RoundValues::close() {
  if (weight_ == 0) return;
  for (double& sum : sums_) sum /= weight_;
}

RoundValues::Error RoundValues::error() const {
  if (results_.empty() || weight_ == 0) return {};
  double squares = 0;
  double elements = 0;
  for (const Result& result : results_) {
    double sum = 0;
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      const double distance = result.values[i] - sums_[result.offset + i];
      sum += distance * distance;
    }
    squares += sum * static_cast<double>(result.ranks.size());
    elements += static_cast<double>(result.values.size() * result.ranks.size());
  }
  double values = 0;
  for (const double value : sums_) values += value * value;
  return {squares / elements, values / static_cast<double>(sums_.size())};
}

void RoundValues::for_each_result(const std::function<void(std::uint32_t, std::span<const double>,
                                                           std::span<const float>)>& visit) const {
  for (const Result& result : results_) {
    const auto reference = std::span(sums_).subspan(result.offset, result.values.size());
    for (const std::uint32_t rank : result.ranks) visit(rank, reference, result.values);
  }
}

}  // namespace leeway::sim
