// Estimates how many missing datagrams are lost, and not only overtaken.
//
// A report has only the number of arrivals, so an overtaken datagram counts as missing until it
// arrives. On a path with jitter, some datagrams are always overtaken. So if n datagrams arrived
// late recently, n of the missing datagrams do not count as lost. On a path that keeps order, none
// arrives late, so every missing datagram counts as lost at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "congestion/windowed_max.h"

namespace leeway::congestion {

class LateArrivals {
 public:
  // `missing`: how many of the datagrams that reports covered so far did not arrive. Returns how
  // many more datagrams count as lost than at the last call. The result is negative if datagrams
  // that counted as lost have arrived.
  std::int64_t lost(std::int64_t missing) {
    if (++reports_ % kPeakReports == 0) peak_.next_window();
    if (reports_ % kLateReports == 0) late_.next_window();
    peak_.add(static_cast<double>(missing));
    late_.add(peak_.value() - static_cast<double>(missing));
    const std::int64_t at_least = missing - static_cast<std::int64_t>(late_.value());
    const std::int64_t lost = std::min(std::max(lost_, at_least), missing);
    return lost - std::exchange(lost_, lost);
  }

 private:
  // Windows of `peak_` and `late_`, in reports. A report comes every quarter of a round trip.
  static constexpr std::uint32_t kPeakReports = 8;
  static constexpr std::uint32_t kLateReports = 1024;

  WindowedMax peak_;  // missing datagrams, in the latest reports
  WindowedMax late_;  // missing datagrams that arrived after all
  std::int64_t lost_ = 0;
  std::uint32_t reports_ = 0;
};

}  // namespace leeway::congestion
