// The rate that a CUBIC flow (RFC 9438) would have if it met the congestion that we meet. It bounds
// a controller that goes by other signs, so that it takes no more from TCP than TCP would.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/time.h"
#include "congestion/controller.h"

namespace leeway::congestion {

class CubicCeiling {
 public:
  static constexpr double kBeta = 0.7;

  // Starts a window of this many packets.
  void begin(Instant now, double packets) {
    window_ = maximum_ = std::max(packets, kWindowMin);
    start_epoch(now);
    any_ = true;
  }
  bool any() const { return any_; }

  // Shrinks the window after a loss or a mark. `packets`: those really in flight, if fewer than the
  // window.
  void cut(Instant now, double packets, double keep = kBeta) {
    if (!any_) begin(now, packets);
    window_ = std::clamp(packets, kWindowMin, window_);
    // Fast convergence: a flow that loses below its last maximum makes room for others.
    maximum_ = window_ < maximum_ ? window_ * (1 + kBeta) / 2 : window_;
    window_ = std::max(window_ * keep, kWindowMin);
    start_epoch(now);
  }

  // Call it once a round trip. If the window was not `used`, it was no limit, and does not grow. It
  // grows up to `most` packets: a window that nothing tests means nothing (RFC 7661).
  void on_round(Instant now, Duration rtt, bool used, double most) {
    if (!any_) return;
    if (!used) {
      epoch_ += rtt;
      return;
    }
    const double seconds = static_cast<double>((now - epoch_).count()) / 1e9;
    const double beyond = seconds - plateau_seconds_;
    reno_ += kReno;
    const double cubic = kGrowth * beyond * beyond * beyond + maximum_;
    window_ = std::max(window_, std::min(std::max({cubic, reno_}), window_ * 1.5));
    window_ = std::max(std::min(window_, most), kWindowMin);
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

  bool any_ = false;
  double window_ = 0;
  double maximum_ = 0;
  double reno_ = 0;
  double plateau_seconds_ = 0;
  Instant epoch_{0};
};

}  // namespace leeway::congestion
