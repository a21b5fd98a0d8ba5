#include "workload/quadratic.h"

#include <cmath>

#include "base/contracts.h"
#include "workload/elementary.h"
#include "workload/lane_sum.h"
#include "workload/normal_field.h"

namespace leeway::sim {
namespace {

constexpr std::uint32_t kCommonRound = NormalField::kFirstConstant;  // c_j, drawn as rank 0's
constexpr std::uint32_t kCenterRound = NormalField::kFirstConstant + 1;

std::vector<float> make_curvatures(std::size_t elements, double condition) {
  std::vector<float> curvatures(elements, 1);
  const double log_condition = portable_log(condition);
  for (std::size_t j = 0; j + 1 < elements; ++j) {
    const double left = static_cast<double>(elements - 1 - j) / static_cast<double>(elements - 1);
    curvatures[j] = static_cast<float>(portable_exp(-log_condition * left));
  }
  return curvatures;
}

double squared_distance(std::span<const float> a, std::span<const float> b) {
  return lane_sum(a.size(), [&](std::size_t j) {
    const double off = static_cast<double>(a[j]) - b[j];
    return off * off;
  });
}

}  // namespace

QuadraticWorkload::QuadraticWorkload(const Options& options, std::uint64_t seed)
    : options_(options),
      seed_(seed),
      parameters_(options.ranks, options.elements),
      centers_(options.ranks * options.elements),
      curvatures_(make_curvatures(options.elements, options.condition)) {
  std::vector<float> common(options.elements);
  NormalField(seed, 0, kCommonRound).add_to(common, 1);
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
    const auto center = std::span(centers_).subspan(rank * elements(), elements());
    std::copy(common.begin(), common.end(), center.begin());
    NormalField(seed, rank, kCenterRound).add_to(center, options.center_deviation);
  }
  optimum_ = fixed_point(std::vector<double>(options.ranks, 1.0 / options.ranks));
}

void QuadraticWorkload::gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) {
  gradient_sum(rank, round, {}, out);
}

void QuadraticWorkload::gradient_sum(std::uint32_t rank, std::uint32_t round,
                                     MicroBatches micro_batches, std::span<float> out) {
  LEEWAY_ASSERT(out.size() == elements());
  const auto x = parameters_.of(rank);
  const float* center = centers_.data() + rank * elements();
  const auto count = static_cast<float>(micro_batches.completed);
  for (std::size_t j = 0; j < out.size(); ++j)
    out[j] = count * (curvatures_[j] * (x[j] - center[j]));
  if (options_.noise == 0) return;
  NormalField(seed_, rank, round).add_to(out, options_.noise * noise_of_sum(micro_batches));
}

void QuadraticWorkload::update(std::uint32_t, std::uint32_t, std::size_t,
                               std::span<const float> mean, std::span<float> parameters) {
  sgd_step(parameters, mean, options_.learning_rate);
}

double QuadraticWorkload::loss(std::uint32_t rank) {
  return gap_of(parameters_.of(rank));
}

std::vector<Measure> QuadraticWorkload::measures() {
  double squares = 0;
  double gaps = 0;
  for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
    squares += squared_distance(parameters_.of(rank), optimum_);
    gaps += gap_of(parameters_.of(rank));
  }
  return {{"workload.distance_to_optimum", std::sqrt(squares / options_.ranks)},
          {"workload.objective_gap", gaps / options_.ranks}};
}

std::vector<float> QuadraticWorkload::fixed_point(std::span<const double> weights) const {
  LEEWAY_ASSERT(weights.size() == options_.ranks);
  double total = 0;
  for (const double weight : weights) total += weight;
  std::vector<double> sums(elements());
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    const float* center = centers_.data() + rank * elements();
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += weights[rank] * center[j];
  }
  std::vector<float> point(elements());
  for (std::size_t j = 0; j < sums.size(); ++j) point[j] = static_cast<float>(sums[j] / total);
  return point;
}

double QuadraticWorkload::gap_of(std::span<const float> x) const {
  return lane_sum(x.size(), [&](std::size_t j) {
    const double off = static_cast<double>(x[j]) - optimum_[j];
    return 0.5 * curvatures_[j] * off * off;
  });
}

}  // namespace leeway::sim
