#include "congestion/fabric.h"

#include <algorithm>
#include <cmath>

namespace leeway::congestion {
namespace {

constexpr double kTargetNs = 30e3;
constexpr double kTargetMoreNs = 30e3;  // divided by the square root of the window in packets
constexpr double kTargetMinNs = 10e3;
constexpr double kStartEnd = 0.5;  // fraction of the target

constexpr int kQuietRounds = 4;         // before the step doubles
constexpr double kStepMost = 1.0 / 32;  // most that the step becomes, as a fraction of the window

// If queueing exceeds the target, the window shrinks by the fraction kBeta * excess / round trip,
// where the excess is the queueing beyond the target.
constexpr double kBeta = 0.8;
constexpr double kKeepMin = 0.5;
constexpr double kWindowMin = kPacketBytes / 16;
constexpr double kDrain = 0.7;      // fraction of the queue
constexpr double kDrainMin = 0.25;  // fraction of the rate
// Least window with which a sender slows down further to drain the queue. The queue of a smaller
// window is gone before a report shows it.
constexpr double kDrainFrom = 2 * kPacketBytes;
constexpr double kOverflowPart = 0.5;  // fraction of the queue
// The queue length at which packets last overflowed limits the target. It grows by this factor each
// round trip, because other senders may have filled a part of the buffer at that time.
constexpr double kOverflowForgets = 1 + 1.0 / 64;

constexpr double kLossMargin = 0.02;
constexpr double kLostMin = 3;
constexpr int kJudgedRounds = 8;
constexpr double kJudgedPackets = 64;
constexpr double kMarkedGain = 1.0 / 8;

// Fraction of the window that may be in flight. It is above 1, since reports come only every
// quarter of a round trip.
constexpr double kAhead = 1.5;
constexpr double kInFlightMin = 2 * kPacketBytes;
// Time that a batch takes to leave. A longer batch would be a queue by itself: with 50 us, a
// 10 Gb/s link carried only 0.82 of its rate.
constexpr double kQuantumSeconds = 10e-6;
constexpr double kQuantumPart = 0.25;   // fraction of the window
constexpr double kFirstSeconds = 1e-3;  // round trip that is assumed until one is known
// Least rate in bytes per second: 20 packets a second. This controller is not made for long,
// varying round trips. With 300 ms, the least window would be a packet in five seconds, and calls
// would never end.
constexpr double kRateMin = 20 * kPacketBytes;

double nanoseconds(Duration duration) {
  return static_cast<double>(duration.count());
}

}  // namespace

double Fabric::target_ns() const {
  const double packets = std::max(window_ / kPacketBytes, 1.0);
  const double ns = kTargetNs + kTargetMoreNs / std::sqrt(packets);
  return std::min(ns, std::max(kOverflowPart * overflow_ns_, kTargetMinNs));
}

void Fabric::on_sample(const Sample& sample) {
  rtt_ = rtt_.count() == 0 ? sample.rtt : rtt_ + (sample.rtt - rtt_) / 2;
  rtt_min_ = rtt_min_.count() == 0 ? sample.rtt_min : rtt_min_ + (sample.rtt_min - rtt_min_) / 2;
  const double queue = nanoseconds(sample.queueing);
  covered_ += sample.covered;
  marked_ += sample.marked;
  tally_.covered += sample.covered;
  tally_.lost += sample.lost;
  tally_.queue_most_ns = std::max(tally_.queue_most_ns, queue);
  const double target = target_ns();
  if (is_fresh(sample)) drain_ = 1;
  if (queue > kStartEnd * target) starting_ = false;
  if (queue <= target) {
    grow(sample);
  } else if (is_fresh(sample)) {
    const double above = (queue - target) / (queue + nanoseconds(rtt_min_));
    shrink(sample.now, std::max(1 - kBeta * above, kKeepMin));
    if (window_ > kDrainFrom) drain_ = std::max(1 - kDrain * queue / nanoseconds(rtt_), kDrainMin);
  }
  if (sample.now - sample.rtt >= round_began_) on_round(sample);
}

void Fabric::grow(const Sample& sample) {
  if (sample.limited) return;
  const auto bytes = static_cast<double>(sample.newly_delivered_bytes);
  window_ += starting_ ? bytes : step_ * bytes / window_;
}

void Fabric::shrink(Instant now, double keep) {
  shrank_at_ = now;
  starting_ = false;
  step_ = kStepFirst;
  quiet_rounds_ = 0;
  window_ = std::max(keep * window_, kWindowMin);
  ++phase_;
}

// Returns true if losses show an overflow. With a small window, a round trip has too few packets to
// tell overflow from chance. So losses are summed over kJudgedRounds round trips, or over more
// until there are kJudgedPackets packets.
bool Fabric::excess() {
  const bool is = tally_.lost >= kLostMin && tally_.lost > kLossMargin * tally_.covered;
  if (is) overflow_ns_ = tally_.queue_most_ns;
  if (is || (++tally_.rounds >= kJudgedRounds && tally_.covered >= kJudgedPackets)) tally_ = {};
  return is;
}

void Fabric::on_round(const Sample& sample) {
  if (covered_ > 0)
    marked_share_ += kMarkedGain * (std::min(marked_ / covered_, 1.0) - marked_share_);
  if (excess()) {
    shrink(sample.now, kKeepMin);
  } else if (marked_ > 0 && is_fresh(sample)) {
    shrink(sample.now, 1 - marked_share_ / 2);
  }
  if (++quiet_rounds_ % kQuietRounds == 0)
    step_ = std::min(2 * step_, std::max(kStepFirst, kStepMost * window_));
  overflow_ns_ = std::min(kOverflowForgets * overflow_ns_, kNoQueueNs);
  covered_ = marked_ = 0;
  round_began_ = sample.now;
}

Pace Fabric::pace() const {
  const double seconds = rtt_.count() == 0 ? kFirstSeconds : to_seconds(rtt_);
  const double bytes_per_second = std::max(drain_ * window_ / seconds, kRateMin);
  const double quantum = std::min(bytes_per_second * kQuantumSeconds, kQuantumPart * window_);
  return {.bits_per_second = 8 * bytes_per_second,
          .in_flight_bytes = static_cast<std::uint64_t>(std::max(kAhead * window_, kInFlightMin)),
          .quantum_bytes = static_cast<std::size_t>(std::max(quantum, kPacketBytes)),
          .phase = phase_};
}

}  // namespace leeway::congestion
