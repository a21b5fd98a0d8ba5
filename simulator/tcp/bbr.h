// BBR's rate and window (version 1: draft-cardwell-iccrg-bbr-congestion-control-00, with the
// constants of Linux) in integers.
//
// The model of the path is the largest delivery rate of the last ten round trips and the smallest
// round trip time of the last ten seconds. Losses affect the window only for one round trip after
// recovery begins.
//
// Left out: long-term sampling for policers, and the later allowance for aggregated
// acknowledgements.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace leeway::sim {

class Bbr {
 public:
  Bbr(std::uint32_t initial_window, std::uint32_t segment_bytes)
      : segment_bytes_(segment_bytes), initial_window_(initial_window), window_(initial_window) {}

  // What the sender learns from one acknowledgement.
  struct Sample {
    std::int64_t now_ns = 0;
    std::uint64_t delivered = 0;  // segments, up to now
    // `delivered` at the time when the newest of the acknowledged segments was sent
    std::uint64_t prior_delivered = 0;
    std::int64_t interval_ns = 0;  // time since then, or time that sending took if longer
    std::int64_t rtt_ns = 0;
    std::uint32_t arrived = 0;  // segments that it acknowledges anew
    std::uint32_t flying = 0;   // segments in flight after the acknowledgement
    bool limited = false;       // the writer limited the rate
  };
  void on_ack(const Sample& sample);
  // Call it when a recovery begins. During the round trip that follows, one segment is sent for
  // each that arrives.
  void on_recovery(std::uint32_t flying);
  void on_recovery_end();
  void on_timeout();

  std::uint32_t window() const;
  // Returns how long after a packet of `bytes` bytes the next one may leave.
  std::int64_t gap_ns(std::uint32_t bytes) const;

 private:
  enum class State : std::uint8_t { startup, drain, probe_rate, probe_rtt };
  static constexpr std::uint64_t kUnit = 256;  // a gain of 1
  static constexpr std::uint64_t kHighGain = 739;
  static constexpr std::uint64_t kDrainGain = 88;
  static constexpr std::uint64_t kWindowGain = 512;
  static constexpr std::array<std::uint64_t, 8> kCycle = {320, 192, 256, 256, 256, 256, 256, 256};
  static constexpr std::uint32_t kWindowMin = 4;
  static constexpr std::size_t kRateRounds = 10;
  static constexpr std::int64_t kRttWindowNs = 10'000'000'000;
  static constexpr std::int64_t kProbeRttNs = 200'000'000;

  std::uint64_t rate() const { return *std::max_element(rates_.begin(), rates_.end()); }
  std::uint64_t target(std::uint64_t gain) const;  // segments
  void update_rate(const Sample& sample);
  void check_full(const Sample& sample);
  void advance_cycle(const Sample& sample);
  void update_rtt(const Sample& sample);
  void update_window(const Sample& sample);
  std::uint64_t pacing_gain() const;

  std::uint32_t segment_bytes_;
  std::uint32_t initial_window_;
  State state_ = State::startup;
  std::uint64_t window_;
  std::array<std::uint64_t, kRateRounds> rates_{};  // bytes per second, by round modulo the size
  std::uint64_t round_ = 0;
  // BBR counts round trips as rounds. The present round ends at the acknowledgement of a segment
  // that was sent after this number of segments had been delivered.
  std::uint64_t round_end_ = 0;
  bool round_start_ = false;
  std::int64_t rtt_ns_ = -1;  // smallest round trip
  std::int64_t rtt_at_ns_ = 0;
  std::int64_t probe_rtt_until_ns_ = -1;
  std::uint64_t full_rate_ = 0;
  int full_rounds_ = 0;
  bool full_ = false;
  std::size_t cycle_ = 0;
  std::int64_t cycle_at_ns_ = 0;
  bool conserving_ = false;
  std::uint64_t conserve_until_ = 0;  // value of delivered_
  std::uint64_t delivered_ = 0;
};

}  // namespace leeway::sim
