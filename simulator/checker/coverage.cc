#include "checker/coverage.h"

#include <cinttypes>
#include <cmath>
#include <vector>

#include "base/contracts.h"

namespace leeway::sim {

void Coverage::add(const NoiseReport& noise, std::span<const double> mean,
                   std::span<const double> result) {
  LEEWAY_ASSERT(noise.measured && mean.size() == result.size() && !mean.empty());
  double measured = 0.0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const double error = result[i] - noise.gain * mean[i];
    measured += error * error;
  }
  const double predicted = noise.loss_variance + noise.quantisation_variance;
  const double difference = measured / static_cast<double>(mean.size()) - predicted;
  predicted_ += predicted;
  ++samples_;
  const double apart = difference - difference_;
  difference_ += apart / static_cast<double>(samples_);
  squares_ += apart * (difference - difference_);
}

double Coverage::standard_error() const {
  const auto n = static_cast<double>(samples_);
  return samples_ < 2 ? 0.0 : std::sqrt(squares_ / (n - 1.0) / n);
}

bool Coverage::holds(double sigmas) const {
  constexpr double kRounding = 1e-12;  // rounding error of float32 results of about 1, squared
  return std::abs(difference_) <=
         kCoverageTolerance * std::abs(predicted()) + sigmas * standard_error() + kRounding;
}

void CoverageCheck::on_reduced(const CallLedger& call, Rank rank, const CollectiveReport& report,
                               std::span<const float> result) {
  if (!check_.on() || !report.noise.measured) return;
  // The owner has replaced its result by what receivers decode, so the result cannot be compared.
  if (call.plan.adopts()) return;
  const FlowPlan plan = call.plan.reduce_to(rank);
  const std::size_t elements = plan.grid.elements();
  double units = 0.0;
  std::vector<double> mean(elements, 0.0);
  for (const RankLedger& side : call.ranks) {
    // This rank has not submitted the call yet, so the true mean is not known.
    if (side.source.size() < plan.source + elements) return;
    units += call.plan.op() == ReduceOp::avg ? side.weight_for(rank) : 1.0;
    if (call.plan.op() == ReduceOp::avg && side.weight_for(rank) == 0.0f) continue;
    for (std::size_t i = 0; i < elements; ++i) mean[i] += side.source[plan.source + i];
  }
  for (double& value : mean) value /= units;
  const double ranks = call.plan.op() == ReduceOp::avg ? 1.0 : call.ranks.size();
  std::vector<double> found(elements);
  for (std::size_t i = 0; i < elements; ++i) found[i] = result[plan.result + i] / ranks;
  coverage_.add(report.noise, mean, found);
}

void CoverageCheck::finish() {
  if (coverage_.samples() < kCoverageSamplesLeast) {
    return check_.rule_out(format_text("%" PRIu64
                                       " shards were measured; their error is judged from %" PRIu64,
                                       coverage_.samples(), kCoverageSamplesLeast));
  }
  check_.expect(coverage_.holds(kCoverageSigmas), [&] {
    return format_text("%" PRIu64
                       " shards: predicted mean square error %.4g, measured %.4g, standard error "
                       "of the difference %.2g",
                       coverage_.samples(), coverage_.predicted(), coverage_.measured(),
                       coverage_.standard_error());
  });
}

}  // namespace leeway::sim
