// Binary logistic regression on points of two classes: objective, gradient and Hessian over any
// range of points.
//
//   f(w) = mean over points of log(1 + exp(-y (w . (x, 1)))) + l2 |w|^2 / 2,  y = 1 or -1
//
// The last element of w is the bias. A class's points lie around its mean with deviation 1 in every
// feature; the means are opposite vectors of norm kMeanNorm in a random direction. Points belong to
// ranks. With label_skew s, even ranks have a share (1 + s) / 2 of points of the first class, odd
// ranks (1 - s) / 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/status.h"

namespace leeway::sim {

class LogisticProblem {
 public:
  // The best plane then misjudges 6.7 % of the points.
  static constexpr float kMeanNorm = 1.5F;

  struct Options {
    std::uint32_t ranks = 1;
    std::uint32_t features = 1;
    std::uint32_t samples_per_rank = 1;
    double label_skew = 0;
    double l2 = 0.01;
  };

  // Points by number; a rank's are next to each other, those of the first class first.
  struct Range {
    std::size_t first = 0;
    std::size_t count = 0;
  };

  LogisticProblem(const Options& options, std::uint64_t seed);

  const Options& options() const { return options_; }
  std::size_t dimensions() const { return std::size_t{options_.features} + 1; }
  Range of_rank(std::uint32_t rank) const;
  Range all() const;

  std::span<const float> point(std::size_t index) const;
  double label(std::size_t index) const;  // 1 or -1

  // w . (x, 1).
  double margin(std::size_t index, std::span<const double> w) const;
  double objective(Range range, std::span<const double> w) const;
  void gradient(Range range, std::span<const double> w, std::span<double> out) const;

  // Return the weights of the points in the Hessian at w, and that Hessian times v.
  std::vector<double> curvatures(Range range, std::span<const double> w) const;
  void hessian_times(Range range, std::span<const double> curvatures, std::span<const double> v,
                     std::span<double> out) const;

 private:
  void add_point(std::size_t index, double factor, std::span<double> out) const;

  Options options_;
  std::vector<float> features_;  // point after point
};

// Returns the point where the objective over all points is least, with a gradient of norm at most
// 1e-10. Fails if a plane separates the points and there is no l2.
Result<std::vector<double>> find_optimum(const LogisticProblem& problem);

}  // namespace leeway::sim
