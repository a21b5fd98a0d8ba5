// Measures the loss that is the network's own, and decides whether other loss exceeds it.
//
// The floor is the share of packets that the path loses while no queue overflows. Later losses are
// *excess* if they exceed the floor by more than chance explains, which is three standard
// deviations. Losses come in bursts, so their variance is burst() times that of independent losses.
// burst() is at least two, and is measured on the packets that teach the floor.
#pragma once

#include <algorithm>
#include <cmath>

namespace leeway::congestion {

class NoiseFloor {
 public:
  // Highest floor. If the path loses a higher share of packets, somebody's queue overflows.
  static constexpr double kMax = 0.25;

  // Adds packets of a time in which our own sending did not load the path.
  void teach(double sent, double lost) {
    if (sent_ >= kSpreadPackets) note_spread(sent, lost);
    sent_ += sent;
    lost_ += std::max(lost, 0.0);
    // A lost share above kMax is no noise: a queue of other flows stood from the start, and we took
    // its delay for the path's own. So everything learnt is forgotten.
    if (sent_ >= kSpreadPackets && lost_ > kMax * sent_) *this = {};
    // The network may change, so older packets count less once there are kMemoryPackets.
    if (sent_ > kMemoryPackets) {
      lost_ *= kMemoryPackets / sent_;
      sent_ = kMemoryPackets;
    }
  }
  // Lowers the floor. Call it when nothing has confirmed the floor for a while.
  void decay() { lost_ *= 0.7; }

  double mean() const { return sent_ <= 0 ? 0 : std::min(lost_ / sent_, kMax); }
  // Returns a lower bound of the floor: the mean minus its uncertainty.
  double value() const {
    if (sent_ <= 0) return 0;
    const double deviation = std::sqrt(mean() * (1 - mean()) / sent_);
    return std::max(mean() - kDoubtSigmas * deviation, 0.0);
  }

  // Ratio of the losses' variance to that of independent losses, kBurstMin to kBurstMax.
  double burst() const {
    return variance_ < kKnownVariance ? kBurstMin
                                      : std::clamp(squares_ / variance_, kBurstMin, kBurstMax);
  }

  // Returns how many of `sent` packets were lost beyond the floor. Returns 0 if chance explains
  // that number, or if it is less than the fraction `margin` of `sent`.
  double excess(double sent, double lost, double margin) const {
    const double expected = sent * mean();
    const double spread =
        burst() * mean() * (1 - mean()) * sent * (1 + (sent_ > 0 ? sent / sent_ : 0));
    double chance = kSigmas * std::sqrt(spread + (sent_ < kKnownPackets ? 1 : 1.0 / 9));
    // A floor learnt from few packets is uncertain, so `chance` is large. Even so, losses that a
    // floor of kMax and chance would not explain are excess.
    const double most = kMax * sent + kSigmas * std::sqrt(burst() * kMax * (1 - kMax) * sent + 1);
    chance = std::min(chance, most - expected);
    const double more = lost - expected;
    return more > std::max(chance, margin * sent) ? more : 0;
  }

  // Returns true if more packets were lost than the floor and two standard deviations explain. If
  // the floor is 0, any loss is more.
  bool more(double sent, double lost) const {
    return lost > sent * mean() + 2 * std::sqrt(burst() * mean() * (1 - mean()) * sent);
  }

 private:
  // Records how far the loss of the latest packets is from the floor that earlier packets gave.
  void note_spread(double sent, double lost) {
    const double off = std::max(lost, 0.0) - sent * mean();
    squares_ += (off * off - squares_) / kSpreads;
    const double variance = mean() * (1 - mean()) * sent * (1 + sent / sent_);
    variance_ += (variance - variance_) / kSpreads;
  }

  static constexpr double kMemoryPackets = 20'000;
  static constexpr double kKnownPackets = 2000;
  // Packets after which the mean is known well enough to measure deviations from it.
  static constexpr double kSpreadPackets = 500;
  static constexpr double kSpreads = 16;
  // Least `variance_` with which burst() is measured. With less, a single burst would decide the
  // result.
  static constexpr double kKnownVariance = 1;
  static constexpr double kBurstMin = 2;
  static constexpr double kBurstMax = 32;
  static constexpr double kSigmas = 3;
  static constexpr double kDoubtSigmas = 1.5;

  double sent_ = 0;
  double lost_ = 0;
  double squares_ = 0;   // squared deviation of the losses from the mean, smoothed
  double variance_ = 0;  // the same for independent losses
};

}  // namespace leeway::congestion
