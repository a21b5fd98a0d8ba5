#include "workload/logistic_problem.h"

#include <algorithm>
#include <cmath>

#include "workload/elementary.h"
#include "workload/lane_sum.h"
#include "workload/normal_field.h"

namespace leeway::sim {
namespace {

constexpr std::uint32_t kDirectionRound = NormalField::kFirstConstant;  // drawn as rank 0's
constexpr std::uint32_t kPointsRound = NormalField::kFirstConstant + 1;

double dot(std::span<const double> a, std::span<const double> b) {
  return lane_sum(a.size(), [&](std::size_t j) { return a[j] * b[j]; });
}

std::vector<float> class_mean(std::uint32_t features, std::uint64_t seed) {
  std::vector<float> mean(features);
  NormalField(seed, 0, kDirectionRound).add_to(mean, 1);
  const double norm = std::sqrt(
      lane_sum(mean.size(), [&](std::size_t j) { return static_cast<double>(mean[j]) * mean[j]; }));
  for (float& m : mean) m = static_cast<float>(m / norm * LogisticProblem::kMeanNorm);
  return mean;
}

// Returns how many of a rank's points are of the first class.
std::size_t first_class_points(const LogisticProblem::Options& options, std::size_t rank) {
  const double skew = rank % 2 == 0 ? options.label_skew : -options.label_skew;
  return static_cast<std::size_t>(options.samples_per_rank * (1 + skew) / 2 + 0.5);
}

}  // namespace

LogisticProblem::LogisticProblem(const Options& options, std::uint64_t seed)
    : options_(options),
      features_(std::size_t{options.ranks} * options.samples_per_rank * options.features) {
  const std::vector<float> mean = class_mean(options.features, seed);
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
    const Range range = of_rank(rank);
    const auto points = std::span(features_).subspan(range.first * options.features,
                                                     range.count * options.features);
    NormalField(seed, rank, kPointsRound).add_to(points, 1);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto sign = static_cast<float>(label(range.first + i / options.features));
      points[i] += sign * mean[i % options.features];
    }
  }
}

LogisticProblem::Range LogisticProblem::of_rank(std::uint32_t rank) const {
  return {std::size_t{rank} * options_.samples_per_rank, options_.samples_per_rank};
}
LogisticProblem::Range LogisticProblem::all() const {
  return {0, std::size_t{options_.ranks} * options_.samples_per_rank};
}

std::span<const float> LogisticProblem::point(std::size_t index) const {
  return std::span(features_).subspan(index * options_.features, options_.features);
}

double LogisticProblem::label(std::size_t index) const {
  const std::size_t rank = index / options_.samples_per_rank;
  return index % options_.samples_per_rank < first_class_points(options_, rank) ? 1 : -1;
}

double LogisticProblem::margin(std::size_t index, std::span<const double> w) const {
  const auto x = point(index);
  return w.back() + lane_sum(x.size(), [&](std::size_t j) { return w[j] * x[j]; });
}

void LogisticProblem::add_point(std::size_t index, double factor, std::span<double> out) const {
  const auto x = point(index);
  for (std::size_t j = 0; j < x.size(); ++j) out[j] += factor * x[j];
  out.back() += factor;
}

double LogisticProblem::objective(Range range, std::span<const double> w) const {
  const double losses = lane_sum(range.count, [&](std::size_t i) {
    return softplus(-label(range.first + i) * margin(range.first + i, w));
  });
  return losses / static_cast<double>(range.count) + options_.l2 * dot(w, w) / 2;
}

void LogisticProblem::gradient(Range range, std::span<const double> w,
                               std::span<double> out) const {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] = options_.l2 * w[j];
  const double share = 1 / static_cast<double>(range.count);
  for (std::size_t i = range.first; i < range.first + range.count; ++i) {
    const double y = label(i);
    add_point(i, -y * share * logistic_function(-y * margin(i, w)), out);
  }
}

std::vector<double> LogisticProblem::curvatures(Range range, std::span<const double> w) const {
  std::vector<double> weights(range.count);
  for (std::size_t i = 0; i < range.count; ++i) {
    const double p = logistic_function(margin(range.first + i, w));
    weights[i] = p * (1 - p) / static_cast<double>(range.count);
  }
  return weights;
}

void LogisticProblem::hessian_times(Range range, std::span<const double> curvatures,
                                    std::span<const double> v, std::span<double> out) const {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] = options_.l2 * v[j];
  for (std::size_t i = 0; i < range.count; ++i) {
    add_point(range.first + i, curvatures[i] * margin(range.first + i, v), out);
  }
}

}  // namespace leeway::sim
