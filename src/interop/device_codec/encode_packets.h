// Encodes packets. A warp encodes a packet, and each lane a slice of the packet at a time.
//
// If a format has a scale for the whole packet, the first code needs the packet's largest
// magnitude. So the warp reads the packet's elements twice, the second time from a cache.
#pragma once

#include "codec/random_bytes.h"
#include "device_codec/formats.h"

namespace leeway::device_codec {

// Returns the largest magnitude of a packet. If the format has blocks, blocks that are not finite
// are left out.
template <Codec which>
LEEWAY_GPU std::uint32_t largest_of_packet(const Warp& warp, const std::byte* elements,
                                           DataType type, unsigned count) {
  constexpr bool kHasBlocks = PacketFormat<which>::kHasBlocks;
  if (type == DataType::f32 && is_quad_aligned(elements)) {
    const std::uint32_t largest = largest_of_quads(warp, elements, count);
    if (!kHasBlocks || largest < codec::kInfinityBits) return largest;
  }
  Warp::PerLane<std::uint32_t> largest;
  for (unsigned step = 0; step < count; step += kStepElements) {
    warp.for_each_lane([&](unsigned lane) {
      const std::uint32_t amax =
          largest_magnitude(load_slice(elements, type, step + lane * kSliceElements, count));
      const bool counts = !kHasBlocks || amax < codec::kInfinityBits;
      if (counts && amax > largest[lane]) largest[lane] = amax;
    });
  }
  warp.spread_largest<Warp::kLanes>(largest);
  std::uint32_t all = 0;
  warp.for_each_lane([&](unsigned lane) { all = largest[lane]; });
  return all;
}

// Returns the magnitude that a packet's scale has to span: the known bound, or the largest
// magnitude. If the format has blocks (NVFP4), blocks that are not finite are left out, as they
// become NaN anyway. If it has none, a value that is not finite makes the whole packet NaN.
template <Codec which>
LEEWAY_GPU std::uint32_t packet_limit(const Warp& warp, const EncodeJob& job,
                                      const PacketOfJob& packet) {
  const std::uint32_t bound = std::bit_cast<std::uint32_t>(job.bound);
  if (PacketFormat<which>::kHasBlocks && job.bound > 0.0f) return bound;
  const std::uint32_t largest =
      largest_of_packet<which>(warp, packet.in(job.elements, job.type), job.type, packet.elements);
  return job.bound > 0.0f && largest < codec::kInfinityBits ? bound : largest;
}

// Encodes a slice; `block` is its place among the tensor's blocks of 16 elements.
template <Codec which, bool stochastic_rounding>
LEEWAY_GPU auto encode_slice(const Slice& slice, const Inverse& scale, bool fits,
                             const codec::Place& place, std::uint64_t block) {
  using Format = PacketFormat<which>;
  const auto draw = [&](std::uint32_t number) {
    return philox(codec::random_counter(place, codec::kRoundingStream, block, number),
                  philox_key(place.seed));
  };
  if constexpr (Format::kSixteenBits) {
    using Element = typename Format::Element;
    if constexpr (stochastic_rounding) {
      return stochastic<Element>(slice, draw(0), draw(1));
    } else {
      return nearest<Element>(slice);
    }
  } else {
    constexpr Minifloat kElement = Format::kLayout.element;
    PhiloxCounter random{};
    if constexpr (stochastic_rounding) random = draw(0);
    constexpr bool kRests = !stochastic_rounding && codec::has_rests(Format::kLayout);
    return codes_of<kElement, stochastic_rounding, kRests>(slice, scale, fits, random);
  }
}

// Encodes one packet, step by step.
template <Codec which, bool stochastic>
class PacketEncoder {
 public:
  using Format = PacketFormat<which>;
  using Buffer = RunBuffer<Format::kBits>;

  LEEWAY_GPU PacketEncoder(const Warp& warp, const EncodeJob& job, const PacketOfJob& packet,
                           Buffer& buffer)
      : warp_(warp),
        job_(job),
        packet_(packet),
        elements_(packet.in(job.elements, job.type)),
        in_quads_(elements_in_quads(elements_, job.type, packet.elements)),
        header_(job.out + packet.at),
        writer_(warp, buffer, header_ + Format::codes_at(packet.elements)) {}

  LEEWAY_GPU void run() {
    if constexpr (kReadsTwice) {
      const std::uint32_t limit = packet_limit<which>(warp_, job_, packet_);
      warp_.for_each_lane([&](unsigned lane) {
        scale_ = begin_packet<which, stochastic>(limit, lane == 0, header_);
      });
    }
    for (unsigned step = 0; step < packet_.elements; step += kStepElements) {
      load(step);
      warp_.for_each_lane([&](unsigned lane) {
        const unsigned at = step + lane * kSliceElements;
        codes_[lane] = encode(slices_[lane], at, scale_block(lane, at));
      });
      writer_.write(codes_, Format::step_bytes(packet_.elements, step),
                    step + kStepElements >= packet_.elements);
    }
  }

 private:
  static constexpr bool kReadsTwice = reads_packets_twice(which);

  LEEWAY_GPU void load(unsigned step) {
    warp_.for_each_lane([&](unsigned lane) {
      const unsigned at = step + lane * kSliceElements;
      slices_[lane] = at + kSliceElements <= in_quads_
                          ? load_quads(elements_, at)
                          : load_slice(elements_, job_.type, at, packet_.elements);
      if constexpr (Format::kHasBlocks) largest_[lane] = largest_magnitude(slices_[lane]);
    });
    if constexpr (Format::kHasBlocks) warp_.template spread_largest<Format::kLanes>(largest_);
  }

  // Chooses the scale of the block at `at`, which the block's first lane writes. Returns the
  // inverse of the scale, by which the block's elements are multiplied.
  LEEWAY_GPU Inverse scale_block(unsigned lane, unsigned at) {
    if constexpr (Format::kHasBlocks) {
      const auto chosen =
          scale_of_block<which, stochastic>(scale_, job_.scale_rule, largest_[lane]);
      if (lane % Format::kLanes == 0 && at < packet_.elements) {
        store_anywhere(header_ + Format::scale_at(at), chosen.stored);
      }
      return {chosen.inverse, chosen.rest};
    } else {
      return scale_.inverse;
    }
  }

  LEEWAY_GPU SliceCodes<Format::kBits> encode(const Slice& slice, unsigned at,
                                              const Inverse& scale) const {
    const std::uint64_t element = job_.place.first_element + packet_.first + at;
    return encode_slice<which, stochastic>(slice, scale, !(job_.bound > 0.0f), job_.place,
                                           element / codec::kRandomBlockElements);
  }

  const Warp& warp_;
  const EncodeJob& job_;
  const PacketOfJob& packet_;
  const std::byte* const elements_;
  const unsigned in_quads_;  // number of leading elements that are whole quads of f32
  std::byte* const header_;
  RunWriter<Format::kBits> writer_;
  PacketScale scale_;
  Warp::PerLane<Slice> slices_;
  Warp::PerLane<std::uint32_t> largest_;  // in the lane's block
  Warp::PerLane<SliceCodes<Format::kBits>> codes_;
};

// Encodes those packets of the job that fall to warp `index` of `warps`.
template <Codec which, bool stochastic>
LEEWAY_GPU void encode_packets(const Warp& warp, const EncodeJob& job, unsigned index,
                               unsigned warps, RunBuffer<PacketFormat<which>::kBits>& buffer) {
  for (unsigned packet = index; packet < job.packets.count; packet += warps) {
    PacketEncoder<which, stochastic>(warp, job, PacketOfJob(job.packets, packet), buffer).run();
  }
}

}  // namespace leeway::device_codec
