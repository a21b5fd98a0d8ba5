// One link's part of the uplink, while a queue stands at its peer. Other senders meet there, and
// the uplink's own queue does not show it.
//
// All senders to that peer together take what one CUBIC flow would (cubic_ceiling.h), in equal
// parts. The link is not limited until a queue has stood at the peer for some round trips
// (kStandingRounds), nor after it has been away for some (kFreeRounds). Losses count as the queue's
// only while it stands.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/time.h"
#include "congestion/cubic_ceiling.h"

namespace leeway::congestion {

class LinkGovernor {
 public:
  struct Report {
    Instant now;
    Duration rtt{0};
    Duration queue{0};   // delay at the peer, beyond what every link shows
    Duration jitter{0};  // standard deviation of the delays' own variation
    std::uint64_t delivered_bytes = 0;
    double covered = 0;  // datagrams
    double lost = 0;
    double noise = 0;         // share of losses that is the network's own
    std::size_t senders = 1;  // ranks that share the peer's access link
  };

  void on_report(const Report& report) {
    least_ = std::min(least_, report.queue);
    delivered_ += static_cast<double>(report.delivered_bytes);
    covered_ += report.covered;
    lost_ += report.lost;
    if (report.now - began_ < report.rtt) return;
    on_round(report);
    began_ = report.now;
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

  void on_round(const Report& report) {
    const Duration target = std::max({kTargetLeast, report.rtt / 16, kJitters * report.jitter});
    const auto senders = static_cast<double>(report.senders);
    if (window_ == UINT64_MAX) {
      standing_ = least_ > target ? standing_ + 1 : 0;
      if (standing_ < kStandingRounds) return;
      standing_ = free_ = 0;
      ceiling_.begin(report.now, senders * delivered_ / kPacketBytes);
    } else {
      const bool used = delivered_ > kUsed * static_cast<double>(window_);
      const double expected = report.noise * covered_;
      const double chance = kSigmas * std::sqrt(2 * expected + 1);
      if (least_ > target / 2 && lost_ > expected + chance && report.now - cut_at_ > report.rtt) {
        cut_at_ = report.now;
        ceiling_.cut(report.now, ceiling_.packets());
      } else {
        ceiling_.on_round(report.now, report.rtt, used, 1e9);
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
