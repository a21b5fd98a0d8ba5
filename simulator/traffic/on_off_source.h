// A source that sends datagrams at a constant rate for a fixed time, then none for a fixed time,
// and so on. Times do not drift, because the remainder of a nanosecond is carried to the next
// datagram.
#pragma once

#include <cstdint>

#include "base/contracts.h"

namespace leeway::sim {

class OnOffSource {
 public:
  // The size of a full Ethernet packet.
  static constexpr std::uint32_t kPacketBytes = 1500;

  // `bits_per_second`: the rate, headers included, while the source is on; at least 1. on_ns must
  // be above 0. With off_ns 0 the source is always on.
  OnOffSource(std::uint64_t bits_per_second, std::int64_t on_ns, std::int64_t off_ns)
      : rate_(bits_per_second), on_ns_(on_ns), off_ns_(off_ns) {
    LEEWAY_ASSERT(bits_per_second > 0 && on_ns > 0 && off_ns >= 0);
  }

  // Call it when the first datagram is sent.
  void begin(std::int64_t now_ns) { begin_ns_ = now_ns; }

  // Returns the time at which the next datagram is sent. The spacing counts only the time in which
  // the source is on, so the rate in that time is exact over many periods.
  std::int64_t next_ns() {
    const std::uint64_t parts = kPacketBytes * kBitNanoseconds + rest_;
    on_time_ns_ += static_cast<std::int64_t>(parts / rate_);
    rest_ = parts % rate_;
    return begin_ns_ + on_time_ns_ + on_time_ns_ / on_ns_ * off_ns_;
  }

 private:
  // Time of one byte in ns at a rate of 1 bit/s.
  static constexpr std::uint64_t kBitNanoseconds = 8 * 1'000'000'000ull;

  std::uint64_t rate_;
  std::int64_t on_ns_;
  std::int64_t off_ns_;
  std::int64_t begin_ns_ = 0;
  std::int64_t on_time_ns_ = 0;  // time of the last datagram, without the times off ...
  std::uint64_t rest_ = 0;       // ... and a part of a nanosecond, in 1 / rate_
};

}  // namespace leeway::sim
