// Means over independent runs. Packets of one run are correlated and runs are not, so the spread
// between runs gives the right standard error for any model.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace leeway::sim {

inline constexpr int kRuns = 40;
// Student's t with 39 degrees of freedom that corresponds to 4 sigma of the normal distribution
inline constexpr double kSigmas = 4.6;

class Replicas {
 public:
  void add(double value) { values_.push_back(value); }

  double mean() const {
    double sum = 0;
    for (const double value : values_) sum += value;
    return sum / static_cast<double>(values_.size());
  }

  double standard_error() const {
    const double center = mean();
    double squares = 0;
    for (const double value : values_) squares += (value - center) * (value - center);
    const double n = static_cast<double>(values_.size());
    return std::sqrt(squares / (n - 1) / n);
  }

 private:
  std::vector<double> values_;
};

}  // namespace leeway::sim
