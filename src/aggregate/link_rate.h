// Arrival rate of one link, smoothed over rounds: the prior rate q of scale_plan.h.
#pragma once

#include <cstdint>

namespace leeway::aggregate {

// Exponentially weighted over packets: a round of n packets counts n, older packets fade with a
// memory of kMemory packets. Starts at rate 1 with the confidence of a few packets, so that a first
// loss does not double the weight. An estimate from earlier rounds is independent of this round's
// losses; its error is a bias of the same relative size.
class LinkRate {
 public:
  static constexpr double kMemory =
      1024.0;  // packets; standard error of the rate about sqrt(p q / kMemory), 1 % at p = 0.1
  static constexpr double kConfidence =
      16.0;  // packets that are taken to have arrived before the first

  double rate() const { return arrived_ / sent_; }

  void add(std::uint32_t sent, std::uint32_t arrived) {
    const double keep = sent < kMemory ? 1.0 - sent / kMemory : 0.0;
    // Once the memory is full the totals stay at kMemory; before, everything seen counts fully.
    const double fade = sent_ + sent > kMemory ? keep : 1.0;
    sent_ = fade * sent_ + sent;
    arrived_ = fade * arrived_ + arrived;
  }

 private:
  double sent_ = kConfidence;
  double arrived_ = kConfidence;
};

}  // namespace leeway::aggregate
