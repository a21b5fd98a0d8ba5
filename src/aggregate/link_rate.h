// Arrival rate of one link, smoothed over rounds: the prior rate q of scale_plan.h.
#pragma once

#include <cstdint>

namespace leeway::aggregate {

// Exponentially weighted over packets: a round of n packets counts n, and older packets fade as
// newer ones come. Starts at rate 1 with the confidence of a few packets, so that a first loss does
// not double a weight. An estimate from earlier rounds is independent of this round's losses; its
// error is a bias of the same relative size.
class LinkRate {
 public:
  // Packets. The rate's standard error is sqrt(p q / 2048): 0.7 % at p = 0.1.
  static constexpr double kMemory = 1024.0;
  // Packets taken to have arrived before the first.
  static constexpr double kConfidence = 16.0;

  double rate() const { return arrived_ / sent_; }

  void add(std::uint32_t sent, std::uint32_t arrived) {
    const double keep = sent < kMemory ? 1.0 - sent / kMemory : 0.0;
    sent_ = keep * sent_ + sent;
    arrived_ = keep * arrived_ + arrived;
  }

 private:
  double sent_ = kConfidence;
  double arrived_ = kConfidence;
};

}  // namespace leeway::aggregate
