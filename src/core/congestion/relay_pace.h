// Pace of datagrams through one relay: the rate at which the relay says that it passes them on
// (WIRE 9.10). It applies in addition to the uplink's pace, with every controller, and only to
// paths through this relay.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace leeway::congestion {

class RelayPace {
 public:
  // If a relay says nothing more for this time, it no longer limits the pace.
  static constexpr Duration kRemembered = std::chrono::seconds(10);
  // How much lost time a host that woke late may make up for. It is short, because a relay
  // tolerates bursts of no more than 50 ms of all that it forwards.
  static constexpr Duration kCatchUp = std::chrono::milliseconds(5);

  void limit(Instant now, std::uint64_t bytes_per_second) {
    ns_per_byte_ = 1e9 / static_cast<double>(std::max<std::uint64_t>(bytes_per_second, 1));
    limited_until_ = now + kRemembered;
  }
  void on_sent(Instant now, std::size_t bytes) {
    if (now >= limited_until_) return;
    const auto takes = static_cast<std::int64_t>(static_cast<double>(bytes) * ns_per_byte_);
    opens_at_ = std::max(opens_at_, now - kCatchUp) + Duration(takes);
  }
  Instant opens_at() const { return std::min(opens_at_, limited_until_); }

 private:
  double ns_per_byte_ = 0;
  Instant opens_at_{0};
  Instant limited_until_{0};
};

}  // namespace leeway::congestion
