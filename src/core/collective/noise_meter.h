// Measures the parts of a reduction's gradient-to-noise ratio on some of its packets. The parts are
// mean squares of the result, of this rank's own contribution, and of the errors of encoding.
// Values are per unit of work: the caller gives the factor.
#pragma once

#include <cstdint>
#include <span>

#include "base/growing_buffer.h"
#include "codec/codec.h"
#include "estimate/noise.h"
#include "leeway/report.h"

namespace leeway::collective {

// Views bytes as float32, the only type that is measured and of which residuals are kept.
inline std::span<const float> floats_of(ByteSpan bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

class NoiseMeter {
 public:
  // Starts another operation, which measures other packets than the one before. A model's gradient
  // differs from place to place, and over operations every place must count alike.
  void reset() {
    result_ = contribution_ = control_ = encoded_ = spread_ = {};
    weights_ = {};
    elements_ = 0;
    measured_weights_ = {};
    ++turn_;
  }

  // Returns true if this packet of `packets` in a shard is measured. All are measured if there are
  // fewer than 8, else every fourth, eighth or 32nd. That is at least two, since a packet to which
  // no other rank contributed says nothing. For long shards, every eighth packet instead of every
  // 32nd cost 4 % of a 16 MiB nvfp4 all_reduce of 4 ranks.
  bool samples(std::uint32_t index, std::uint32_t packets) const {
    const std::uint32_t stride = packets < 8 ? 1 : packets < 16 ? 4 : packets < 64 ? 8 : 32;
    return (index + turn_) % stride == 0;
  }

  // Adds the weights by which a packet that this rank owns was summed. Called for every such
  // packet.
  void add_weights(const estimate::WeightMoments& weights, std::size_t elements) {
    weights_.add(weights, static_cast<double>(elements));
    elements_ += static_cast<double>(elements);
  }
  // Adds elements of the result that this rank owns.
  void add_result(std::span<const float> result, double factor,
                  const estimate::WeightMoments& weights) {
    result_.add(result, factor);
    measured_weights_.add(weights, static_cast<double>(result.size()));
  }
  void add_own(std::span<const float> contribution, double factor) {
    contribution_.add(contribution, factor);
  }
  // Adds the distance of our contribution from a guess of the result.
  void add_control(std::span<const float> contribution, double factor,
                   std::span<const float> control, double control_factor);
  // Adds the difference between values and what their receivers will decode.
  void add_encoded(const codec::Format& format, const codec::Place& place,
                   std::span<const float> values, ByteSpan encoded, double factor) {
    encoded_.add_difference(values, decoded(format, place, encoded, values.size()), factor);
  }
  void add_spread(const codec::Format& format, const codec::Place& place,
                  std::span<const float> values, ByteSpan encoded, double factor) {
    spread_.add_difference(values, decoded(format, place, encoded, values.size()), factor);
  }

  // Returns true if there are no measurements: no packet of our shard, or no own units of work in
  // it.
  bool empty() const { return result_.elements == 0 || contribution_.elements == 0; }
  // Returns `known` with the measured means filled in.
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
  GrowingBuffer decoded_;
};

NoiseReport report_of(const estimate::NoiseEstimate& estimate, double loss);

}  // namespace leeway::collective
