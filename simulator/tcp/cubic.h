// CUBIC's congestion window (RFC 9438) in integers.
//
// Windows are in segments times 2^32; the cubic function uses microseconds. Results depend only on
// the calls, on every compiler and machine.
//
// HyStart++ (RFC 9406) is left out, so slow start ends at a loss. Undoing needless reductions
// (section 4.9) is left out, too.
#pragma once

#include <cstdint>

#include "engine/fixed_point.h"

namespace leeway::sim {

// Returns the greatest r with r^3 <= n.
std::uint64_t floor_cube_root(Wide n);

class Cubic {
 public:
  explicit Cubic(std::uint32_t initial_window);

  std::uint32_t window() const { return static_cast<std::uint32_t>(window_ >> kPoint); }
  std::uint32_t threshold() const { return threshold_; }
  bool slow_start() const { return window() < threshold_; }

  // Call it when `segments` segments arrived while the window limited the sender. `rtt_ns` is the
  // smoothed round trip time.
  void on_ack(std::int64_t now_ns, std::uint32_t segments, std::int64_t rtt_ns);

  // Call it on a loss or a mark. Sets the threshold to beta times the window. The caller then
  // lowers the window to the threshold with set_window(), as proportional rate reduction does.
  void on_congestion();
  // Call it on a timeout. Nothing is known about the path after that, so above the threshold the
  // window grows as on a new connection.
  void on_timeout();

  void set_window(std::uint32_t segments);

  // Call it when the sender had nothing to send for `idle_ns`. The idle time does not count as time
  // to grow. With `restart` the window is halved for every `timeout_ns` of idle time, down to the
  // initial window.
  void on_idle(std::int64_t idle_ns, std::int64_t timeout_ns, bool restart);

 private:
  static constexpr int kPoint = 32;
  static constexpr std::uint64_t kOne = std::uint64_t{1} << kPoint;
  static constexpr std::int64_t kNoEpoch = INT64_MIN;

  void begin_epoch(std::int64_t now_ns);
  std::uint64_t cubic_window(std::int64_t since_epoch_ns) const;
  void grow_estimate(std::uint32_t segments);
  void avoid_congestion(std::int64_t now_ns, std::uint32_t segments, std::int64_t rtt_ns);

  std::uint32_t initial_window_;
  std::uint64_t window_;
  std::uint32_t threshold_ = UINT32_MAX;  // segments
  std::uint64_t maximum_ = 0;             // W_max
  std::uint64_t prior_ = 0;               // cwnd_prior
  std::uint64_t estimate_ = 0;            // W_est, of the Reno-friendly region
  std::int64_t epoch_ns_ = kNoEpoch;      // begin of this congestion avoidance
  std::int64_t plateau_us_ = 0;           // K
};

}  // namespace leeway::sim
