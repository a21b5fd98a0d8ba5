// Binary logistic regression on points of two classes: objective, gradient and Hessian over any
// range of points.
//
//   f(w) = mean over points of log(1 + exp(-y (w . (x, 1)))) + l2 |w|^2 / 2, y = 1 or -1 by class
//
// A point has the features x. The last element of w is the bias. A class's points are normal around
// its mean, with deviation 1 in every feature. The two means are opposite vectors of norm kMeanNorm
// in a random direction. With label_skew s, a share (1 + s) / 2 of an even rank's points is of the
// first class, and (1 - s) / 2 of an odd rank's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/status.h"

namespace leeway::sim {

class LogisticProblem {
 public:
  // Norm of a class's mean. The best plane then misclassifies 6.7 % of the points.
  static constexpr float kMeanNorm = 1.5F;

  struct Options {
    std::uint32_t ranks = 1;
    std::uint32_t features = 1;
    std::uint32_t samples_per_rank = 1;
    double label_skew = 0;
    double l2 = 0.01;
  };

  // A range of point numbers. A rank's points form a range, those of the first class first.
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

  // margin() returns w . (x, 1), where x are the features of point `index`.
  double margin(std::size_t index, std::span<const double> w) const;
  double objective(Range range, std::span<const double> w) const;
  void gradient(Range range, std::span<const double> w, std::span<double> out) const;

  // curvatures() returns the weights of the points in the Hessian at w. hessian_times() multiplies
  // that Hessian by v.
  std::vector<double> curvatures(Range range, std::span<const double> w) const;
  void hessian_times(Range range, std::span<const double> curvatures, std::span<const double> v,
                     std::span<double> out) const;

 private:
  void add_point(std::size_t index, double factor, std::span<double> out) const;

  Options options_;
  std::vector<float> features_;  // point after point
};

// Returns the w with the least objective over all points; the gradient's norm there is at most
// 1e-10. Fails if a plane separates the classes and l2 is 0.
Result<std::vector<double>> find_optimum(const LogisticProblem& problem);

}  // namespace leeway::sim
