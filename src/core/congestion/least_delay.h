// Least delay of the last one to two minutes. Older delays are forgotten because paths change and
// clocks drift. The memory is that long because a queue that stands all the time would be taken for
// the path's own delay.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace leeway::congestion {

class LeastDelay {
 public:
  void add(Instant now, std::int64_t ns) {
    if (now - window_began_ >= kWindow) {
      previous_ = window_began_.ns == 0 ? kNone : current_;
      current_ = kNone;
      window_began_ = now;
    }
    current_ = std::min(current_, ns);
  }
  bool known() const { return value() != kNone; }
  std::int64_t value() const { return std::min(current_, previous_); }

 private:
  static constexpr Duration kWindow = std::chrono::seconds(60);
  static constexpr std::int64_t kNone = INT64_MAX;

  std::int64_t current_ = kNone;
  std::int64_t previous_ = kNone;
  Instant window_began_{0};
};

}  // namespace leeway::congestion
