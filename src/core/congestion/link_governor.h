// Limits one link while a queue stands at its peer, where the data of several senders meets. Such a
// queue is not in the uplink, so the controller does not see it.
//
// All senders to the peer together take what one CUBIC flow would (cubic_ceiling.h), in equal
// parts. The limit begins when a queue has stood for kStandingRounds round trips, and ends when no
// queue stood for kFreeRounds round trips. Losses shrink the limit only while a queue stands.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/time.h"
#include "congestion/controller.h"
#include "congestion/cubic_ceiling.h"

namespace leeway::congestion {

class LinkGovernor {
 public:
  // `queue`: the link's queueing delay minus the uplink's queueing delay. `noise`: share of packets
  // that the network loses by itself. `senders`: number of ranks that share the peer's access link.
  void on_report(const Sample& sample, Duration queue, double noise, std::size_t senders) {
    least_ = std::min(least_, queue);
    delivered_ += static_cast<double>(sample.newly_delivered_bytes);
    covered_ += sample.covered;
    lost_ += sample.lost;
    if (sample.now - began_ < sample.rtt) return;
    on_round(sample, noise, static_cast<double>(senders));
    began_ = sample.now;
    least_ = Duration::max();
    delivered_ = covered_ = lost_ = 0;
  }

  // Bytes that may be in flight to the peer; UINT64_MAX if not limited.
  std::uint64_t window_bytes() const { return window_; }

 private:
  static constexpr int kStandingRounds = 3;
  static constexpr int kFreeRounds = 8;
  static constexpr double kSigmas = 3;  // standard deviations, for losses in bursts
  static constexpr Duration kTargetLeast = std::chrono::milliseconds(1);
  static constexpr int kJitters = 3;  // standard deviations that two links' delays differ by
  static constexpr double kUsed = 0.5;

  void on_round(const Sample& sample, double noise, double senders) {
    const Duration target = std::max({kTargetLeast, sample.rtt / 16, kJitters * sample.jitter});
    if (window_ == UINT64_MAX) {
      standing_ = least_ > target ? standing_ + 1 : 0;
      if (standing_ < kStandingRounds) return;
      standing_ = free_ = 0;
      ceiling_.begin(sample.now, senders * delivered_ / kPacketBytes);
    } else {
      const bool used = delivered_ > kUsed * static_cast<double>(window_);
      const double expected = noise * covered_;
      const double chance = kSigmas * std::sqrt(2 * expected + 1);
      if (least_ > target / 2 && lost_ > expected + chance && sample.now - cut_at_ > sample.rtt) {
        cut_at_ = sample.now;
        ceiling_.cut(sample.now, ceiling_.packets());
      } else {
        ceiling_.on_round(sample.now, sample.rtt, used);
      }
      free_ = least_ < target / 2 ? free_ + 1 : 0;
      if (free_ >= kFreeRounds) {
        window_ = UINT64_MAX;
        return;
      }
    }
    window_ = static_cast<std::uint64_t>(ceiling_.packets() * kPacketBytes / senders);
  }

  std::uint64_t window_ = UINT64_MAX;
  CubicCeiling ceiling_;  // window of all senders together
  int standing_ = 0;
  int free_ = 0;
  Instant cut_at_{0};
  Instant began_{0};
  Duration least_ = Duration::max();
  double delivered_ = 0;
  double covered_ = 0;
  double lost_ = 0;
};

}  // namespace leeway::congestion
