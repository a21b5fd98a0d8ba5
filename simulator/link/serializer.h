// A line that sends packets one after the other at a fixed rate, without rounding errors that add
// up. The remaining fraction of a nanosecond is carried into the next packet. So n packets back to
// back take n times their exact time, rounded up once.
#pragma once

#include <cstdint>

#include "base/contracts.h"

namespace leeway::sim {

class Serializer {
 public:
  static constexpr std::uint64_t kRateMax = 10'000'000'000'000;  // 10 Tb/s
  static constexpr std::uint32_t kBytesMax = 1u << 30;           // 8e9 times it fits 63 bits

  // 1 to kRateMax bits per second.
  explicit Serializer(std::uint64_t bits_per_second) : rate_(bits_per_second) {
    LEEWAY_ASSERT(rate_ > 0 && rate_ <= kRateMax);
  }

  // Returns when the line begins to send a packet that comes now, rounded up to nanoseconds.
  std::int64_t start(std::int64_t now_ns) const { return idle(now_ns) ? now_ns : end(); }

  // Sends a packet that comes now. Returns when its last bit is sent, rounded up.
  std::int64_t send(std::int64_t now_ns, std::uint32_t bytes) {
    LEEWAY_ASSERT(bytes <= kBytesMax);
    if (idle(now_ns)) {
      free_ns_ = now_ns;
      rest_ = 0;
    }
    const std::uint64_t parts = bytes * kBitNanoseconds + rest_;
    free_ns_ += static_cast<std::int64_t>(parts / rate_);
    rest_ = parts % rate_;
    return end();
  }

  // Returns true if everything is sent. A last bit that leaves at this very instant counts as sent.
  bool idle(std::int64_t now_ns) const {
    return now_ns > free_ns_ || (now_ns == free_ns_ && rest_ == 0);
  }

 private:
  std::int64_t end() const { return free_ns_ + (rest_ > 0 ? 1 : 0); }

  // time of a byte at 1 bit/s, in ns
  static constexpr std::uint64_t kBitNanoseconds = 8 * 1'000'000'000ull;

  std::uint64_t rate_;
  std::int64_t free_ns_ = INT64_MIN;  // end of the last packet, whole ns ...
  std::uint64_t rest_ = 0;            // ... and a part of one, in 1 / rate_
};

}  // namespace leeway::sim
