// Proportional rate reduction (RFC 6937, as in Linux). It decides how many segments may be sent
// while the window falls from its size at a loss to the new threshold.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leeway::sim {

class ProportionalReduction {
 public:
  void begin(std::uint32_t window_before, std::uint32_t threshold) {
    window_before_ = std::max(window_before, 1u);
    threshold_ = threshold;
    delivered_ = sent_ = 0;
  }

  void on_sent() { ++sent_; }

  // Returns the window after an acknowledgement of `arrived` segments, with `flying` still in
  // flight. `healthy`: the acknowledgement filled a hole and showed no further loss, so slow start
  // up to the threshold is safe.
  std::uint32_t window(std::uint32_t arrived, std::uint32_t flying, bool healthy) {
    delivered_ += arrived;
    std::int64_t may_send = 0;
    if (flying > threshold_) {
      const std::uint64_t share = (threshold_ * delivered_ + window_before_ - 1) / window_before_;
      may_send = static_cast<std::int64_t>(share) - static_cast<std::int64_t>(sent_);
    } else {
      may_send = std::max(static_cast<std::int64_t>(delivered_) - static_cast<std::int64_t>(sent_),
                          std::int64_t{arrived});
      may_send = std::min<std::int64_t>(may_send + (healthy ? 1 : 0), threshold_ - flying);
    }
    // The first repair may be sent at once, even if the window has no room.
    may_send = std::max<std::int64_t>(may_send, sent_ > 0 ? 0 : 1);
    return flying + static_cast<std::uint32_t>(may_send);
  }

 private:
  std::uint32_t window_before_ = 1;
  std::uint32_t threshold_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace leeway::sim
