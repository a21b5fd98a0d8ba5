// Measures jitter: how much a path's delay varies without a queue of ours.
//
// A queue of ours grows and drains over some reports. So each report's delay lies halfway between
// those of the reports before and after it, except where the queue turns from growing to draining.
// The difference from halfway is jitter. Turns are few, and the median of the differences leaves
// them out.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/time.h"

namespace leeway::congestion {

class DelayJitter {
 public:
  // Adds the delay that the next report shows. A constant offset between the clocks does not
  // matter.
  void add(std::int64_t delay_ns) {
    if (delays_ >= 2) {
      off_[(delays_ - 2) % kReports] = std::abs(delay_ns + before_last_ - 2 * last_) / 2;
      if (known() && delays_ % kRefreshed == 0) measure();
    }
    before_last_ = last_;
    last_ = delay_ns;
    ++delays_;
  }

  // Returns whether there were enough reports for a reliable median.
  bool known() const { return delays_ >= kReportsMin; }
  // Standard deviation of one delay.
  Duration deviation() const { return deviation_; }

 private:
  static constexpr std::size_t kReportsMin = 32;
  static constexpr std::size_t kReports = 128;
  static constexpr std::size_t kRefreshed = 8;
  // Factor from the median to the deviation of one delay. The difference from halfway has sqrt(1.5)
  // times that deviation. If jitter is normal, the median of its absolute value is 0.6745 of its
  // own deviation.
  static constexpr double kOfMedian = 1 / (0.6745 * 1.2247);

  void measure() {
    const std::size_t count = std::min(delays_ - 1, kReports);
    std::array<std::int64_t, kReports> sorted = off_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
    std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
    deviation_ = Duration(static_cast<std::int64_t>(kOfMedian * static_cast<double>(*middle)));
  }

  std::array<std::int64_t, kReports> off_{};  // differences of the latest delays from halfway, ns
  std::int64_t last_ = 0;
  std::int64_t before_last_ = 0;
  std::size_t delays_ = 0;
  Duration deviation_{0};
};

}  // namespace leeway::congestion
