#include "link/trace_line.h"

#include <utility>

#include "base/contracts.h"

namespace leeway::sim {

TraceLine::TraceLine(std::vector<std::int64_t> times_ns, std::uint32_t bytes_each)
    : times_ns_(std::move(times_ns)), bytes_each_(bytes_each), left_(bytes_each) {
  LEEWAY_ASSERT(!times_ns_.empty() && times_ns_.back() > 0 && bytes_each_ > 0);
}

std::int64_t TraceLine::send(std::int64_t now_ns, std::uint32_t bytes) {
  seek(now_ns);
  while (bytes > left_) {
    bytes -= left_;
    advance();
  }
  left_ -= bytes;
  return time();
}

// Moves to the first listed time, at or after `now_ns`, at which the line can still send bytes.
void TraceLine::seek(std::int64_t now_ns) {
  const std::int64_t period = times_ns_.back();
  if (now_ns > cycle_ns_ + period) {
    // Skips whole repetitions in which no packet came, but not one that ends exactly now.
    cycle_ns_ += (now_ns - cycle_ns_ - 1) / period * period;
    next_ = 0;
    left_ = bytes_each_;
  }
  while (time() < now_ns || left_ == 0) advance();
}

void TraceLine::advance() {
  left_ = bytes_each_;
  if (++next_ < times_ns_.size()) return;
  next_ = 0;
  cycle_ns_ += times_ns_.back();
}

}  // namespace leeway::sim
