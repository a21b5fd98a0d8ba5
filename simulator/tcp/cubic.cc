#include "tcp/cubic.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::sim {

namespace {

__extension__ using WideSigned = __int128;

// C = 2/5 segments per s^3 (RFC 9438). Times are in us, and the cube of a time in us is 1e18 times
// its cube in s.
constexpr std::uint64_t kCubedSecond = 1'000'000'000'000'000'000;
constexpr std::uint64_t kGrowthTop = 2;
constexpr std::uint64_t kGrowthBottom = 5;

// beta = 7/10: a loss reduces the window to this share. alpha = 3 (1 - beta) / (1 + beta) = 9/17:
// segments that the estimate of Reno's window gains per round trip.
constexpr std::uint64_t kBetaTop = 7;
constexpr std::uint64_t kBetaBottom = 10;
constexpr std::uint64_t kAlphaTop = 9;
constexpr std::uint64_t kAlphaBottom = 17;

constexpr std::uint32_t kWindowMin = 2;  // segments, after a reduction

// Longest time in the cubic function, 33 minutes; longer ones are cut to it. Its cube times 2^33
// fits 127 bits.
constexpr std::int64_t kCubeUsMax = 2'000'000'000;

}  // namespace

std::uint64_t floor_cube_root(Wide n) {
  std::uint64_t root = 0;
  for (int bit = 42; bit-- > 0;) {
    const std::uint64_t larger = root | std::uint64_t{1} << bit;
    if (Wide{larger} * larger * larger <= n) root = larger;
  }
  return root;
}

Cubic::Cubic(std::uint32_t initial_window)
    : initial_window_(initial_window), window_(initial_window * kOne) {
  LEEWAY_ASSERT(initial_window > 0);
}

void Cubic::on_ack(std::int64_t now_ns, std::uint32_t segments, std::int64_t rtt_ns) {
  if (slow_start()) {
    const std::uint32_t step = std::min(segments, threshold_ - window());
    window_ += step * kOne;
    segments -= step;
  }
  if (segments > 0) avoid_congestion(now_ns, segments, rtt_ns);
}

void Cubic::on_congestion() {
  epoch_ns_ = kNoEpoch;
  prior_ = window_;
  // Fast convergence: a sender whose window did not reach the last maximum makes room for others.
  maximum_ = window_ < maximum_ ? window_ * (kBetaBottom + kBetaTop) / (2 * kBetaBottom) : window_;
  const std::uint64_t reduced = window_ * kBetaTop / kBetaBottom >> kPoint;
  threshold_ = std::max(static_cast<std::uint32_t>(reduced), kWindowMin);
}

void Cubic::on_timeout() {
  on_congestion();
  maximum_ = 0;
}

void Cubic::set_window(std::uint32_t segments) {
  window_ = std::max<std::uint64_t>(segments, 1) * kOne;
}

void Cubic::on_idle(std::int64_t idle_ns, std::int64_t timeout_ns, bool restart) {
  if (epoch_ns_ != kNoEpoch) epoch_ns_ += idle_ns;
  if (!restart || idle_ns <= timeout_ns) return;
  if (threshold_ != UINT32_MAX) threshold_ = std::max(threshold_, window() / 4 * 3);
  const std::uint64_t floor = std::min(initial_window_ * kOne, window_);
  for (; idle_ns > timeout_ns && window_ > floor; idle_ns -= timeout_ns) window_ /= 2;
  window_ = std::max(window_, floor);
}

void Cubic::begin_epoch(std::int64_t now_ns) {
  epoch_ns_ = now_ns;
  estimate_ = window_;
  plateau_us_ = 0;
  if (window_ >= maximum_) {
    maximum_ = window_;
    return;
  }
  const Wide cubed_us =
      Wide{maximum_ - window_} * (kCubedSecond * kGrowthBottom) / kGrowthTop >> kPoint;
  plateau_us_ = static_cast<std::int64_t>(floor_cube_root(cubed_us));
}

std::uint64_t Cubic::cubic_window(std::int64_t since_epoch_ns) const {
  const std::int64_t us = std::clamp(since_epoch_ns / 1000 - plateau_us_, -kCubeUsMax, kCubeUsMax);
  const WideSigned grown = WideSigned{us} * us * us * static_cast<std::int64_t>(kGrowthTop * kOne) /
                           static_cast<std::int64_t>(kCubedSecond * kGrowthBottom);
  const WideSigned window = grown + maximum_;
  return window < 0 ? 0 : static_cast<std::uint64_t>(window);
}

// Grows the estimate of Reno's window for `segments` acknowledged segments. Below the window of the
// last loss it grows by alpha instead of 1, because CUBIC reduces its window less than Reno.
void Cubic::grow_estimate(std::uint32_t segments) {
  const bool slower = estimate_ < prior_;
  const std::uint64_t top = slower ? kAlphaTop : 1;
  const std::uint64_t bottom = slower ? kAlphaBottom : 1;
  estimate_ +=
      static_cast<std::uint64_t>((Wide{segments * top} << (2 * kPoint)) / (Wide{window_} * bottom));
}

void Cubic::avoid_congestion(std::int64_t now_ns, std::uint32_t segments, std::int64_t rtt_ns) {
  if (epoch_ns_ == kNoEpoch) begin_epoch(now_ns);
  const std::int64_t since_epoch_ns = now_ns - epoch_ns_;
  grow_estimate(segments);
  if (cubic_window(since_epoch_ns) < estimate_) {
    window_ = std::max(window_, estimate_);
    return;
  }
  const std::uint64_t target =
      std::clamp(cubic_window(since_epoch_ns + rtt_ns), window_, window_ + window_ / 2);
  window_ += static_cast<std::uint64_t>((Wide{target - window_} * segments << kPoint) / window_);
}

}  // namespace leeway::sim
