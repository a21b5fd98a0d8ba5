// What `wan` knows of the path: its delay and jitter, the longest queue lately, and the queue at
// which packets overflowed. These give the target: the longest queue that `wan` leaves standing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/time.h"
#include "congestion/controller.h"
#include "congestion/windowed_max.h"

namespace leeway::congestion {

class WanPath {
 public:
  void on_sample(const Sample& sample) {
    rtt_ = rtt_.count() == 0 ? sample.rtt : rtt_ + (sample.rtt - rtt_) / 8;
    rtt_min_ = rtt_min_.count() == 0 ? sample.rtt_min : rtt_min_ + (sample.rtt_min - rtt_min_) / 8;
    jitter_ = sample.jitter;
    queue_.add(static_cast<double>(sample.queueing.count()));
    if (sample.now - window_began_ < kWindow) return;
    window_began_ = sample.now;
    queue_.next_window();
    carried_.next_window();
  }
  // Call it with the rate that arrived in a round trip, bits per second.
  void on_carried(double rate) { carried_.add(rate); }
  // Call it when packets have overflowed. The longest queue lately is taken for the queue that
  // overflowed.
  void on_overflow() { overflow_queue_ = queue_.value(); }
  // Call it when the noise floor has explained the losses of the latest overflow.
  void forget_overflow() { overflow_queue_ = 0; }

  Duration rtt() const { return rtt_; }          // smoothed
  Duration rtt_min() const { return rtt_min_; }  // over all links, weighted by use
  // Rate of one packet in each round trip, bits per second.
  double packet_rate() const { return kPacketBytes * 8 / std::max(to_seconds(rtt_), 1e-6); }
  // Packets in flight at a rate.
  double packets(double rate) const { return std::max(rate / packet_rate(), kPacketsMin); }
  // Maxima of the last 3 to 6 seconds: queue in ns, and bits per second that arrived.
  double longest_queue() const { return queue_.value(); }
  double carried() const { return carried_.value(); }
  // Half of the queue in which packets overflowed, ns; 0 if unknown.
  double half_overflow() const { return overflow_queue_ / 2; }

  // Returns the target at a rate in bits per second.
  Duration target(double rate) const {
    const auto rtt_ns = static_cast<double>(rtt_min_.count());
    double ns = std::max(std::min(kTargetNs / std::sqrt(packets(rate)), rtt_ns * kTargetMost),
                         kTargetMinNs);
    if (overflow_queue_ > 0) {
      const double trains_ns =
          std::min(kOwnPackets * kPacketBytes * 8e9 / std::max(rate, 1.0), rtt_ns * kTrainsMost);
      ns = std::min(ns, std::max(half_overflow(), trains_ns));
    }
    const double jitters = overflow_queue_ > 0 ? kJittersOverflown : kJitters;
    return Duration(
        static_cast<std::int64_t>(std::max(ns, jitters * static_cast<double>(jitter_.count()))));
  }

  static constexpr double kPacketsMin = 4;  // in flight

 private:
  static constexpr Duration kWindow = std::chrono::seconds(3);
  static constexpr double kTargetNs = 15e6;  // divided by the square root of the packets in flight
  static constexpr double kTargetMinNs = 1e6;
  static constexpr double kTargetMost = 1.0 / 16;  // fraction of the round trip
  // The target is at least this many standard deviations of the jitter, because single delays among
  // thousands are that far above the least delay.
  static constexpr double kJitters = 6;
  // Replaces kJitters once packets have overflowed a queue. Delay then more likely comes from a
  // queue that is shared with other flows, so less of it is taken for jitter.
  static constexpr double kJittersOverflown = 4;
  static constexpr double kOwnPackets = 1.5;       // our own batch of packets is a queue by itself
  static constexpr double kTrainsMost = 1.0 / 80;  // fraction of the round trip

  Duration rtt_{0};
  Duration rtt_min_{0};
  Duration jitter_{0};  // in the latest sample
  WindowedMax queue_;
  WindowedMax carried_;
  Instant window_began_{0};
  double overflow_queue_ = 0;  // longest queue when packets overflowed, ns; 0 if unknown
};

}  // namespace leeway::congestion
