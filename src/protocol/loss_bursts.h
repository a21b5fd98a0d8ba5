// Whether the datagrams of a path are lost each by itself or in bursts.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leeway::protocol {

// The numbers of losses in stretches of datagrams vary by their mean where losses are independent,
// and by more where they come in bursts: for bursts of geometric length with mean b by 2b - 1 times
// the mean, in stretches that are much longer.
class LossBursts {
 public:
  // Of `covered` more datagrams so many are missing; `share` of all are, smoothed.
  void note(std::uint32_t covered, std::int32_t missing, double share) {
    covered_ += covered;
    missing_ += missing;
    if (covered_ < kStretch) return;
    const double expected = share * covered_;
    const double off = missing_ - expected;
    // Smoothed alike, so that stretches with few losses expected count for as little.
    squares_ += (off * off - squares_) / kStretches;
    expected_ += (expected - expected_) / kStretches;
    ++stretches_;
    covered_ = 0;
    missing_ = 0;
  }

  // Variance over mean. 1 until enough was seen, and where it is not more than chance explains.
  double dispersion() const {
    if (stretches_ < kStretches || expected_ <= 0.0) return 1.0;
    const double dispersion = squares_ / expected_;
    return dispersion < kByChance ? 1.0 : std::min(dispersion, kMost);
  }

 private:
  // Several bursts of some ten, and soon over.
  static constexpr std::uint32_t kStretch = 64;
  static constexpr int kStretches = 32;
  // Of 32 squares the mean has a standard error of a quarter.
  static constexpr double kByChance = 2.0;
  static constexpr double kMost = 64.0;

  std::uint32_t covered_ = 0;
  std::int32_t missing_ = 0;
  int stretches_ = 0;
  double squares_ = 0.0;
  double expected_ = 0.0;
};

}  // namespace leeway::protocol
