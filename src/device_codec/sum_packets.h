// Decoding and summing: one warp a packet, whose sum stays in registers while one contribution
// after the other is added. Decoding alone is a sum of one.
//
// A lane reads the codes of its slice where they lie. It reads several contributions before it adds
// the first: memory answers late, and a warp has few others beside it that could use the time.
#pragma once

#include "device_codec/formats.h"

namespace leeway::device_codec {

template <Codec which>
class PacketSum {
 public:
  using Format = PacketFormat<which>;

  LEEWAY_GPU PacketSum(const Warp& warp, const SumJob& job, unsigned index)
      : warp_(warp), job_(job), packet_(job.packets, index) {
    static_assert(kContributionsMax == 2 * Warp::kLanes);
    warp.for_each_lane([&](unsigned lane) {
      load_factors(index, lane, weights_[lane], scales_[lane]);
      load_factors(index, lane + Warp::kLanes, more_weights_[lane], more_scales_[lane]);
    });
  }

  LEEWAY_GPU void run() {
    for (unsigned step = 0; step < packet_.elements; step += kStepElements) {
      begin(step);
      for (unsigned i = 0; i < job_.contributions_count;) i += add(i, step);
      if (!empty_ || job_.absent == SumJob::Absent::zeros) store(step);
    }
  }

 private:
  // Contributions that are read before the first is added: as many as registers have room for.
  static constexpr unsigned kAtOnce = Format::kSixteenBits ? 2 : 4;

  // What contribution i is multiplied by, which lane i keeps until all want it.
  LEEWAY_GPU void load_factors(unsigned index, unsigned i, float& weight, float& scale) const {
    weight = scale = 0.0f;
    if (i >= job_.contributions_count) return;
    const Contribution& one = job_.contributions[i];
    weight = one.factors == nullptr ? 1.0f : one.factors[index];
    if (weight != 0.0f && one.encoded) scale = packet_factor<which>(one.data + packet_.at);
  }

  // The caller's; 0: is left out.
  LEEWAY_GPU float weight(unsigned i) const { return warp_.value_of(weights_, more_weights_, i); }
  // Of the packet.
  LEEWAY_GPU float scale(unsigned i) const { return warp_.value_of(scales_, more_scales_, i); }

  // So many from `i` on are there, and all are encoded.
  template <unsigned count>
  LEEWAY_GPU bool are_encoded(unsigned i) const {
    if (i + count > job_.contributions_count) return false;
    bool all = true;
    LEEWAY_UNROLL
    for (unsigned k = i; k < i + count; ++k)
      all = all && weight(k) != 0.0f && job_.contributions[k].encoded;
    return all;
  }

  // Adds contribution i, or several from there on; returns how many.
  template <unsigned count = kAtOnce>
  LEEWAY_GPU unsigned add(unsigned i, unsigned step) {
    if (are_encoded<count>(i)) {
      add_encoded<count>(i, step);
      empty_ = false;
      return count;
    }
    if constexpr (count > 1) {
      return add<count / 2>(i, step);
    } else {
      if (weight(i) != 0.0f) {
        add_elements(i, step);
        empty_ = false;
      }
      return 1;
    }
  }

  LEEWAY_GPU void begin(unsigned step) {
    empty_ = !job_.adds;
    warp_.for_each_lane([&](unsigned lane) {
      Slice& sum = sums_[lane];
      if (!empty_) {
        sum = load(job_.elements, step, lane);
        return;
      }
      LEEWAY_UNROLL
      for (float& value : sum.values) value = kNothing;
    });
  }

  LEEWAY_GPU Slice load(const std::byte* elements, unsigned step, unsigned lane) const {
    return load_slice(elements, job_.type, first(step, lane), packet_.end());
  }

  LEEWAY_GPU void store(unsigned step) {
    warp_.for_each_lane([&](unsigned lane) {
      store_slice(job_.elements, job_.type, first(step, lane), packet_.end(),
                  empty_ ? Slice{} : sums_[lane]);
    });
  }

  LEEWAY_GPU void add_elements(unsigned i, unsigned step) {
    const float factor = weight(i);
    warp_.for_each_lane([&](unsigned lane) {
      add_weighted(factor, load(job_.contributions[i].data, step, lane), sums_[lane]);
    });
  }

  template <unsigned count>
  LEEWAY_GPU void add_encoded(unsigned i, unsigned step) {
    constexpr unsigned kSliceBytes = kSliceElements * Format::kBits / 8;
    float weights[count];
    float packets[count];
    LEEWAY_UNROLL
    for (unsigned k = 0; k < count; ++k) {
      weights[k] = weight(i + k);
      packets[k] = scale(i + k);
    }
    warp_.for_each_lane([&](unsigned lane) {
      const unsigned at = step + lane * kSliceElements;
      if (at >= packet_.elements) return;
      const unsigned place = Format::codes_at(packet_.elements) + at / kSliceElements * kSliceBytes;
      const unsigned left = Format::bytes(packet_.elements) - place;
      SliceCodes<Format::kBits> codes[count];
      decltype(load_block_scale<which>(nullptr, 0)) scales[count];
      LEEWAY_UNROLL
      for (unsigned k = 0; k < count; ++k) {
        const std::byte* const header = job_.contributions[i + k].data + packet_.at;
        codes[k] = load_codes<Format::kBits>(header + place, left);
        scales[k] = load_block_scale<which>(header, at);
      }
      LEEWAY_UNROLL
      for (unsigned k = 0; k < count; ++k) {
        const float block = block_factor<which>(scales[k], packets[k]);
        add_weighted(weights[k] * block, decode(codes[k]), sums_[lane]);
      }
    });
  }

  static LEEWAY_GPU Slice decode(const SliceCodes<Format::kBits>& codes) {
    if constexpr (Format::kSixteenBits) {
      return floats_of<typename Format::Element>(codes);
    } else {
      return values_of<Format::kLayout.element>(codes);
    }
  }

  LEEWAY_GPU std::uint64_t first(unsigned step, unsigned lane) const {
    return packet_.first + step + lane * kSliceElements;
  }

  const Warp& warp_;
  const SumJob& job_;
  const PacketOfJob packet_;
  bool empty_ = true;  // nothing was added yet
  Warp::PerLane<Slice> sums_;
  Warp::PerLane<float> weights_, more_weights_;
  Warp::PerLane<float> scales_, more_scales_;
};

// The packets of one of `warps` warps.
template <Codec which>
LEEWAY_GPU void sum_packets(const Warp& warp, const SumJob& job, unsigned index, unsigned warps) {
  for (unsigned packet = index; packet < job.packets.count; packet += warps)
    PacketSum<which>(warp, job, packet).run();
}

}  // namespace leeway::device_codec
