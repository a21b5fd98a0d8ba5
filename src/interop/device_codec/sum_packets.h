// Decodes and sums packets, one warp a packet. The packet's sum stays in registers while
// contributions are added one after the other. Decoding alone is a sum of one contribution.
//
// A lane reads the codes of its slice where they lie. It reads several contributions before it adds
// the first, because memory is slow and there are too few other warps to hide this.
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
    Warp::PerLane<bool> encoded, more_encoded, plain, more_plain;
    warp.for_each_lane([&](unsigned lane) {
      const auto look_at = [&](unsigned i, float& weight, float& scale, bool& is_encoded,
                               bool& is_plain) {
        load_factors(index, i, weight, scale);
        is_encoded = weight != 0.0f && job_.contributions[i].encoded;
        is_plain = weight != 0.0f && !job_.contributions[i].encoded;
      };
      look_at(lane, weights_[lane], scales_[lane], encoded[lane], plain[lane]);
      look_at(lane + Warp::kLanes, more_weights_[lane], more_scales_[lane], more_encoded[lane],
              more_plain[lane]);
    });
    const auto both = [&](Warp::PerLane<bool>& low, Warp::PerLane<bool>& high) {
      return warp.lanes_with(low) | std::uint64_t{warp.lanes_with(high)} << Warp::kLanes;
    };
    encoded_ = both(encoded, more_encoded);
    plain_ = both(plain, more_plain);
  }

  LEEWAY_GPU void run() {
    if (nothing() && job_.absent == SumJob::Absent::stays) return;
    for (unsigned step = 0; step < packet_.elements; step += kStepElements) {
      begin(step);
      for (unsigned i = 0; i < job_.contributions_count;) i += add(i, step);
      store_step(warp_, packet_.in(job_.elements, job_.type), job_.type, step, packet_.elements,
                 sums_);
    }
  }

 private:
  // Number of contributions that are read before the first is added. Registers limit it.
  static constexpr unsigned kAtOnce = Format::kBits > 4 ? 2 : 4;

  // Loads weight and scale of contribution i. Lane i of the warp holds them, and hands them to the
  // other lanes later.
  LEEWAY_GPU void load_factors(unsigned index, unsigned i, float& weight, float& scale) const {
    weight = scale = 0.0f;
    if (i >= job_.contributions_count) return;
    const Contribution& one = job_.contributions[i];
    weight = one.factors == nullptr ? 1.0f : one.factors[index];
    if (weight != 0.0f && one.encoded) scale = packet_factor<which>(one.data + packet_.at);
  }

  // Returns the caller's factor of contribution i; 0 if the contribution is left out.
  LEEWAY_GPU float weight(unsigned i) const { return warp_.value_of(weights_, more_weights_, i); }
  // Returns the factor in the header of contribution i's packet.
  LEEWAY_GPU float scale(unsigned i) const { return warp_.value_of(scales_, more_scales_, i); }

  // Returns true if nothing is added to the packet.
  LEEWAY_GPU bool nothing() const { return (encoded_ | plain_) == 0 && !job_.adds; }

  // Adds contribution i, or `count` contributions from i on if all of these are encoded. Skips i if
  // it is left out. Returns the number of contributions that were added or skipped.
  template <unsigned count = kAtOnce>
  LEEWAY_GPU unsigned add(unsigned i, unsigned step) {
    constexpr unsigned kAll = (1u << count) - 1;
    if ((encoded_ >> i & kAll) == kAll) {
      add_encoded<count>(i, step);
      return count;
    }
    if constexpr (count > 1) {
      return add<count / 2>(i, step);
    } else {
      if ((plain_ >> i & 1) != 0) add_elements(i, step);
      return 1;
    }
  }

  LEEWAY_GPU void begin(unsigned step) {
    warp_.for_each_lane([&](unsigned lane) {
      Slice& sum = sums_[lane];
      if (job_.adds) {
        sum = load(job_.elements, step, lane);
        return;
      }
      LEEWAY_UNROLL
      for (float& value : sum.values) value = nothing() ? 0.0f : kNothing;
    });
  }

  LEEWAY_GPU Slice load(const std::byte* elements, unsigned step, unsigned lane) const {
    return load_slice(packet_.in(elements, job_.type), job_.type, step + lane * kSliceElements,
                      packet_.elements);
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
      CodeWords<Format::kBits> codes[count];
      decltype(load_block_scale<which>(nullptr, 0)) scales[count];
      const auto header = [&](unsigned k) { return job_.contributions[i + k].data + packet_.at; };
      LEEWAY_UNROLL
      for (unsigned k = 0; k < count; ++k) scales[k] = load_block_scale<which>(header(k), at);
      if (left >= kSliceBytes) {
        LEEWAY_UNROLL
        for (unsigned k = 0; k < count; ++k) codes[k].load(header(k) + place);
      } else {
        LEEWAY_UNROLL
        for (unsigned k = 0; k < count; ++k) codes[k].load_some(header(k) + place, left);
      }
      LEEWAY_UNROLL
      for (unsigned k = 0; k < count; ++k) {
        const float block = block_factor<which>(scales[k], packets[k]);
        add_weighted(weights[k] * block, decode(codes[k].codes()), sums_[lane]);
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

  const Warp& warp_;
  const SumJob& job_;
  const PacketOfJob packet_;
  std::uint64_t encoded_ = 0;  // a bit for each encoded contribution that is not left out
  std::uint64_t plain_ = 0;    // the same for contributions of plain elements
  Warp::PerLane<Slice> sums_;
  Warp::PerLane<float> weights_, more_weights_;
  Warp::PerLane<float> scales_, more_scales_;
};

// Sums those packets of the job that fall to warp `index` of `warps`.
template <Codec which>
LEEWAY_GPU void sum_packets(const Warp& warp, const SumJob& job, unsigned index, unsigned warps) {
  for (unsigned packet = index; packet < job.packets.count; packet += warps)
    PacketSum<which>(warp, job, packet).run();
}

}  // namespace leeway::device_codec
