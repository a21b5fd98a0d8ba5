// A quantity that is measured many times and compared with a prediction, within 3 standard errors.
// Each comparison is printed as a row of a table, so that the test's log is the evidence.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace leeway::testing {

inline constexpr double kSigmas = 3.0;

// Independent observations, or means of batches much longer than any correlation. Welford's
// recursion avoids cancellation when the mean is much larger than the spread.
class Sample {
 public:
  void add(double value) {
    ++count_;
    const double delta = value - mean_;
    mean_ += delta / static_cast<double>(count_);
    squares_ += delta * (value - mean_);
  }
  std::uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  double standard_error() const {
    const auto n = static_cast<double>(count_);
    return count_ < 2 ? 0.0 : std::sqrt(squares_ / (n - 1) / n);
  }

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0.0;
  double squares_ = 0.0;
};

inline void print_header(const char* title) {
  std::printf("%-48s %12s %12s %10s %7s\n", title, "measured", "predicted", "std.err.", "sigmas");
}

// Expects the mean to be `predicted`. Also expects the standard error to be below `resolution`, the
// deviation that the test must detect, so a test that could not detect it fails.
inline void expect_matches(const std::string& what, const Sample& sample, double predicted,
                           double resolution) {
  const double deviation = sample.mean() - predicted;
  const double error = sample.standard_error();
  std::printf("%-48s %12.6f %12.6f %10.6f %7.2f\n", what.c_str(), sample.mean(), predicted, error,
              error > 0.0 ? deviation / error : 0.0);
  EXPECT_LE(std::abs(deviation), kSigmas * error) << what;
  EXPECT_GT(error, 0.0) << what << ": nothing was random";
  EXPECT_LT(error, resolution) << what << ": too few observations to tell anything";
}

}  // namespace leeway::testing
