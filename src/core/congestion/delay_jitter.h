// Measures jitter: how much a path's delay varies apart from our own queue.
//
// Our queue grows and drains over several reports. So without jitter, the delay in each report
// would lie halfway between the delays in the reports before and after it. The distance from
// halfway is taken for jitter. At the few reports where the queue turns from growing to draining,
// this distance is too long, but the median of all distances ignores them.
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
  // Adds the delay that the next report shows. It may contain a constant offset between two clocks.
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
  // Converts the median distance from halfway to the standard deviation s of one delay. If jitter
  // is normally distributed, the distance has standard deviation sqrt(1.5) s. The median of its
  // absolute value is 0.6745 times that.
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
