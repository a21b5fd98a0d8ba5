// The window that a CUBIC flow (RFC 9438) would have under the same losses and marks. It bounds a
// controller that follows other signs than losses, so that the controller takes no more from TCP
// flows than CUBIC would.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/time.h"
#include "congestion/controller.h"

namespace leeway::congestion {

class CubicCeiling {
 public:
  static constexpr double kBeta = 0.7;

  // Starts a window of this many packets. Call it before anything else, or to start anew.
  void begin(Instant now, double packets) {
    window_ = maximum_ = std::max(packets, kWindowMin);
    start_epoch(now);
  }

  // Shrinks the window to the fraction `keep` after a loss or a mark. `packets`: packets in flight.
  // If they are fewer than the window allows, the fraction is of `packets`.
  void cut(Instant now, double packets, double keep = kBeta) {
    window_ = std::clamp(packets, kWindowMin, window_);
    // CUBIC's fast convergence: a loss at a smaller window than at the last loss means that another
    // flow needs room, so this one leaves more.
    maximum_ = window_ < maximum_ ? window_ * (1 + kBeta) / 2 : window_;
    window_ = std::max(window_ * keep, kWindowMin);
    start_epoch(now);
  }

  // Call it once a round trip. `used`: whether the window limited what was sent. A window that
  // limited nothing does not grow, because nothing tested whether the path carries more (RFC 7661).
  void on_round(Instant now, Duration rtt, bool used) {
    if (!used) {
      epoch_ += rtt;
      return;
    }
    const double beyond = to_seconds(now - epoch_) - plateau_seconds_;
    reno_ += kReno;
    const double cubic = kGrowth * beyond * beyond * beyond + maximum_;
    window_ = std::max(window_, std::min(std::max({cubic, reno_}), window_ * 1.5));
  }

  double packets() const { return window_; }

 private:
  static constexpr double kGrowth = 0.4;                          // packets per cubed second
  static constexpr double kReno = 3 * (1 - kBeta) / (1 + kBeta);  // packets a round trip
  static constexpr double kWindowMin = 4;

  void start_epoch(Instant now) {
    epoch_ = now;
    reno_ = window_;
    plateau_seconds_ = std::cbrt(std::max(maximum_ - window_, 0.0) / kGrowth);
  }

  double window_ = 0;
  double maximum_ = 0;
  double reno_ = 0;
  double plateau_seconds_ = 0;
  Instant epoch_{0};
};

}  // namespace leeway::congestion
