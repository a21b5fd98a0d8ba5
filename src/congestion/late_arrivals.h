// Which part of the datagrams that are missing is lost, and not only overtaken.
//
// A report tells counts. A datagram that was overtaken is missing until it comes, and a line whose
// delay jitters always has some such. As many as came late lately may be missing now: they are not
// counted as lost. On a path that keeps order, every missing datagram counts at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "congestion/windowed_max.h"

namespace leeway::congestion {

class LateArrivals {
 public:
  // `missing`: how many did not arrive, of all that reports covered so far. Gives how many more are
  // lost than was said before; less than 0: some of those came after all.
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
  // Reports come every quarter of a round trip.
  static constexpr std::uint32_t kPeakReports = 8;
  static constexpr std::uint32_t kLateReports = 1024;

  WindowedMax peak_;  // missing, in some round trips
  WindowedMax late_;  // of those, as many as came after all
  std::int64_t lost_ = 0;
  std::uint32_t reports_ = 0;
};

}  // namespace leeway::congestion
