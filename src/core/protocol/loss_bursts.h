// Measures whether the datagrams of a path are lost independently or in bursts.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leeway::protocol {

// If losses are independent, the variance of the number of losses in a stretch of datagrams equals
// its mean. If losses come in bursts, the variance is larger: for bursts of geometric length with
// mean b, it is 2b - 1 times the mean in stretches that are much longer than bursts.
class LossBursts {
 public:
  // Notes that `missing` of `covered` more datagrams are lost. `share` is the smoothed share of all
  // datagrams that are lost.
  void note(std::uint32_t covered, std::int32_t missing, double share) {
    covered_ += covered;
    missing_ += missing;
    if (covered_ < kStretch) return;
    const double expected = share * covered_;
    const double off = missing_ - expected;
    // Squares and expected losses are smoothed apart and divided in dispersion(), so that stretches
    // with few expected losses have little weight.
    squares_ += (off * off - squares_) / kStretches;
    expected_ += (expected - expected_) / kStretches;
    ++stretches_;
    covered_ = 0;
    missing_ = 0;
  }

  // Returns the variance divided by the mean. Returns 1 before kStretches stretches have ended, and
  // if the quotient is so low that chance explains it (kByChance).
  double dispersion() const {
    if (stretches_ < kStretches || expected_ <= 0.0) return 1.0;
    const double dispersion = squares_ / expected_;
    return dispersion < kByChance ? 1.0 : std::min(dispersion, kMost);
  }

 private:
  // Datagrams in a stretch: enough for several bursts of ten datagrams, few enough to be soon over.
  static constexpr std::uint32_t kStretch = 64;
  static constexpr int kStretches = 32;
  // Chance may explain a dispersion below this. Independent losses have 1, and the mean of 32
  // squares (kStretches) has a standard error of a quarter, so 2 is four of them above.
  static constexpr double kByChance = 2.0;
  static constexpr double kMost = 64.0;

  std::uint32_t covered_ = 0;
  std::int32_t missing_ = 0;
  int stretches_ = 0;
  double squares_ = 0.0;
  double expected_ = 0.0;
};

}  // namespace leeway::protocol
