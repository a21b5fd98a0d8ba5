// Measures how much noise a reduction adds to a gradient, on some of its packets: mean squares of
// the result, of this rank's contribution, and of encoding errors. All are of values per unit of
// work; the caller's `factor` turns elements into such values.
#pragma once

#include <cstdint>
#include <span>

#include "base/growing_buffer.h"
#include "codec/codec.h"
#include "estimate/noise.h"
#include "leeway/report.h"

namespace leeway::collective {

// Views bytes as float32. Only float32 tensors are measured or have residuals.
inline std::span<const float> floats_of(ByteSpan bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

class NoiseMeter {
 public:
  // Starts another operation. It measures other packets than the operation before, because
  // gradients differ from place to place and every place must count alike in the long run.
  void reset() {
    result_ = contribution_ = control_ = encoded_ = spread_ = {};
    weights_ = {};
    elements_ = 0;
    measured_weights_ = {};
    ++turn_;
  }

  // Returns true if packet `index` of a shard of `packets` packets is measured. In a shard of fewer
  // than 8 packets all are measured, in a longer shard every 4th, 8th or 32nd packet. At least two
  // packets of a longer shard are measured: a single one might be a packet to which no other rank
  // contributed, which shows no noise. For long shards, measuring every 8th packet instead of every
  // 32nd cost 4 % of the time of a 16 MiB nvfp4 all_reduce of 4 ranks.
  bool samples(std::uint32_t index, std::uint32_t packets) const {
    const std::uint32_t stride = packets < 8 ? 1 : packets < 16 ? 4 : packets < 64 ? 8 : 32;
    return (index + turn_) % stride == 0;
  }

  // Adds the weights with which a packet of this rank's shard was summed. Call it for every packet.
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
  // Adds the distance of this rank's contribution from `control`, the caller's guess of the result.
  void add_control(std::span<const float> contribution, double factor,
                   std::span<const float> control, double control_factor);
  // Adds the encoding error: the difference between `values` and what receivers will decode.
  void add_encoded(const codec::Format& format, const codec::Place& place,
                   std::span<const float> values, ByteSpan encoded, double factor) {
    encoded_.add_difference(values, decoded(format, place, encoded, values.size()), factor);
  }
  void add_spread(const codec::Format& format, const codec::Place& place,
                  std::span<const float> values, ByteSpan encoded, double factor) {
    spread_.add_difference(values, decoded(format, place, encoded, values.size()), factor);
  }

  // Returns true if nothing was measured, because this rank owns no packet, or has no units of work
  // in its own shard.
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
