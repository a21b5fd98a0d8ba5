// A line with recorded capacity, like mahimahi's delivery traces (mm-link), but in nanoseconds. At
// each listed time it can send a fixed number of bytes; bytes that are not used then are lost.
//
// A packet may use several of these times, and several packets may share one. A packet has left
// when its last byte has left. The list begins again at its last time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leeway::sim {

class TraceLine {
 public:
  // `times_ns` are 0 or more and do not fall, and the last is above 0. `bytes_each` is above 0.
  TraceLine(std::vector<std::int64_t> times_ns, std::uint32_t bytes_each);

  // Returns the time at which the first byte of a packet that comes now is sent.
  std::int64_t start(std::int64_t now_ns) {
    seek(now_ns);
    return time();
  }

  // Sends a packet that comes now. Returns when its last byte is sent.
  std::int64_t send(std::int64_t now_ns, std::uint32_t bytes);

 private:
  std::int64_t time() const { return cycle_ns_ + times_ns_[next_]; }
  void seek(std::int64_t now_ns);
  void advance();

  std::vector<std::int64_t> times_ns_;
  std::uint32_t bytes_each_;
  std::int64_t cycle_ns_ = 0;  // begin of this repetition
  std::size_t next_ = 0;       // the opportunity in use ...
  std::uint32_t left_;         // ... and how many of its bytes are left
};

}  // namespace leeway::sim
