// Round trip time and retransmission timeout (RFC 6298, with the minimum as in Linux). The timeout
// is smoothed + max(minimum, 4 x variation), doubled with every timeout in a row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tcp/tcp_options.h"

namespace leeway::sim {

class RttEstimator {
 public:
  explicit RttEstimator(const TcpOptions& options)
      : initial_ns_(options.rto_initial_ns),
        minimum_ns_(options.rto_min_ns),
        maximum_ns_(options.rto_max_ns) {
    if (options.handshake_rtt_ns > 0) sample(options.handshake_rtt_ns, options.handshake_rtt_ns);
  }

  bool known() const { return smoothed_ns_ >= 0; }
  std::int64_t smoothed_ns() const { return std::max<std::int64_t>(smoothed_ns_, 0); }
  std::int64_t least_ns() const { return least_ns_; }

  // Takes the longest and the shortest round trip among the segments of one acknowledgement. All of
  // these must have been sent only once (Karn's algorithm).
  void sample(std::int64_t longest_ns, std::int64_t shortest_ns) {
    least_ns_ = std::min(least_ns_, shortest_ns);
    if (!known()) {
      smoothed_ns_ = longest_ns;
      variation_ns_ = longest_ns / 2;
      return;
    }
    const std::int64_t difference = longest_ns - smoothed_ns_;
    variation_ns_ += (std::max(difference, -difference) - variation_ns_) / 4;
    smoothed_ns_ += difference / 8;
  }

  std::int64_t timeout_ns() const {
    std::int64_t timeout_ns =
        known() ? smoothed_ns_ + std::max(minimum_ns_, 4 * variation_ns_) : initial_ns_;
    for (int i = 0; i < doublings_ && timeout_ns < maximum_ns_; ++i) timeout_ns *= 2;
    return std::min(timeout_ns, maximum_ns_);
  }

  void on_timeout() { ++doublings_; }
  void on_progress() { doublings_ = 0; }

 private:
  std::int64_t initial_ns_;
  std::int64_t minimum_ns_;
  std::int64_t maximum_ns_;
  std::int64_t smoothed_ns_ = -1;
  std::int64_t variation_ns_ = 0;
  std::int64_t least_ns_ = INT64_MAX;
  int doublings_ = 0;
};

}  // namespace leeway::sim
