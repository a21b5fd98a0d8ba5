// Measures, on some packets of a reduction, what its gradient-to-noise ratio is made of: the
// result, this rank's own contribution to it, and what encoding did to contributions and results.
// Values are per unit of work: the caller names the factor.
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"
#include "codec/codec.h"
#include "estimate/noise.h"
#include "leeway/report.h"

namespace leeway::collective {

class NoiseMeter {
 public:
  // Starts another operation, which measures other packets than the one before: a model's gradient
  // differs from place to place, and over operations every place must count alike.
  void reset() {
    result_ = contribution_ = control_ = encoded_ = spread_ = {};
    weights_ = {};
    elements_ = 0;
    measured_weights_ = {};
    ++turn_;
  }

  // Whether this packet of so many in a shard is measured: all of a few, and of more every fourth,
  // eighth or 32nd, but two at least: one that came from nobody else tells nothing. Every eighth of
  // many cost 4 % of a 16 MiB nvfp4 all_reduce of 4 ranks.
  bool samples(std::uint32_t index, std::uint32_t packets) const {
    const std::uint32_t stride = packets < 8 ? 1 : packets < 16 ? 4 : packets < 64 ? 8 : 32;
    return (index + turn_) % stride == 0;
  }

  // Of every packet that this rank owns, by which weights it was summed.
  void add_weights(const estimate::WeightMoments& weights, std::size_t elements) {
    weights_.add(weights, static_cast<double>(elements));
    elements_ += static_cast<double>(elements);
  }
  // Elements that this rank owns.
  void add_result(std::span<const float> result, double factor,
                  const estimate::WeightMoments& weights) {
    result_.add(result, factor);
    measured_weights_.add(weights, static_cast<double>(result.size()));
  }
  void add_own(std::span<const float> contribution, double factor) {
    contribution_.add(contribution, factor);
  }
  // How far our own is from a guess of the result.
  void add_control(std::span<const float> contribution, double factor,
                   std::span<const float> control, double control_factor);
  // Values and what their receivers will read instead.
  void add_encoded(const codec::Format& format, const codec::Place& place,
                   std::span<const float> values, ByteSpan encoded, double factor) {
    encoded_.add_difference(values, decoded(format, place, encoded, values.size()), factor);
  }
  void add_spread(const codec::Format& format, const codec::Place& place,
                  std::span<const float> values, ByteSpan encoded, double factor) {
    spread_.add_difference(values, decoded(format, place, encoded, values.size()), factor);
  }

  // Nothing to conclude from: no packet of our shard, or no units of our own behind it.
  bool empty() const { return result_.elements == 0 || contribution_.elements == 0; }
  // `known` with the measured means filled in.
  estimate::NoiseStatistics complete(estimate::NoiseStatistics known) const;

 private:
  struct Mean {
    double sum = 0.0;
    std::uint64_t elements = 0;
    void add(std::span<const float> values, double factor);
    void add_difference(std::span<const float> a, std::span<const float> b, double factor);
    double value() const { return elements == 0 ? 0.0 : sum / static_cast<double>(elements); }
  };

  std::span<const float> decoded(const codec::Format& format, const codec::Place& place,
                                 ByteSpan encoded, std::size_t elements);

  std::uint32_t turn_ = 0;
  estimate::WeightMoments weights_;  // sums over elements
  double elements_ = 0;
  estimate::WeightMoments measured_weights_;
  Mean result_;
  Mean contribution_;
  Mean control_;
  Mean encoded_;
  Mean spread_;
  Arena decoded_;
};

NoiseReport report_of(const estimate::NoiseEstimate& estimate, double loss);

}  // namespace leeway::collective
