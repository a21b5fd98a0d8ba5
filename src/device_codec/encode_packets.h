// Encoding: one warp a packet, one lane a slice of it.
//
// A format with a scale for the whole packet needs the packet's largest magnitude before its first
// code: the warp then reads its elements twice, the second time from a cache.
#pragma once

#include "codec/random_bytes.h"
#include "device_codec/formats.h"

namespace leeway::device_codec {

// What a packet's scale has to span: the bound that is known, or the largest magnitude. Blocks of
// NVFP4 that are not finite do not count, as they decode to NaN anyway; where all elements share
// the scale, they all become NaN.
template <Codec which>
LEEWAY_GPU std::uint32_t packet_limit(const Warp& warp, const EncodeJob& job,
                                      const PacketOfJob& packet) {
  using Format = PacketFormat<which>;
  const std::uint32_t bound = std::bit_cast<std::uint32_t>(job.bound);
  if (Format::kHasBlocks && job.bound > 0.0f) return bound;
  Warp::PerLane<std::uint32_t> largest;
  for (unsigned step = 0; step < packet.elements; step += kStepElements) {
    warp.for_each_lane([&](unsigned lane) {
      const std::uint64_t first = packet.first + step + lane * kSliceElements;
      const std::uint32_t amax =
          largest_magnitude(load_slice(job.elements, job.type, first, packet.end()));
      const bool counts = !Format::kHasBlocks || amax < codec::kInfinityBits;
      if (counts && amax > largest[lane]) largest[lane] = amax;
    });
  }
  warp.spread_largest<Warp::kLanes>(largest);
  std::uint32_t limit = 0;
  warp.for_each_lane([&](unsigned lane) { limit = largest[lane]; });
  return job.bound > 0.0f && limit < codec::kInfinityBits ? bound : limit;
}

// The codes of a slice; `block` is its place among the tensor's blocks of 16 elements.
template <Codec which, bool stochastic_rounding>
LEEWAY_GPU auto encode_slice(const Slice& slice, float inverse, const codec::Place& place,
                             std::uint64_t block) {
  using Format = PacketFormat<which>;
  const auto draw = [&](std::uint32_t number) {
    return philox<10>(codec::random_counter(place, codec::kRoundingStream, block, number),
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
    return codes_of<kElement, stochastic_rounding>(slice, inverse, random);
  }
}

// One packet's encoding, step by step.
template <Codec which, bool stochastic>
class PacketEncoder {
 public:
  using Format = PacketFormat<which>;

  LEEWAY_GPU PacketEncoder(const Warp& warp, const EncodeJob& job, const PacketOfJob& packet,
                           RunBuffer& buffer)
      : warp_(warp), job_(job), packet_(packet), buffer_(buffer), header_(job.out + packet.at) {}

  LEEWAY_GPU void run() {
    if constexpr (kReadsTwice) {
      const std::uint32_t limit = packet_limit<which>(warp_, job_, packet_);
      warp_.for_each_lane(
          [&](unsigned lane) { scale_ = begin_packet<which>(limit, lane == 0, header_); });
    }
    if constexpr (kReadsTwice) fetch(0);
    for (unsigned step = 0; step < packet_.elements; step += kStepElements) {
      load(step);
      warp_.for_each_lane([&](unsigned lane) {
        const float inverse = scale_block(lane, step + lane * kSliceElements);
        encode(lane, step + lane * kSliceElements, inverse);
      });
      warp_.sync();
      write_codes(step);
      warp_.sync();
    }
  }

 private:
  static constexpr bool kReadsTwice = reads_packets_twice(which);

  LEEWAY_GPU void fetch(unsigned step) {
    warp_.for_each_lane([&](unsigned lane) {
      const std::uint64_t first = packet_.first + step + lane * kSliceElements;
      fetched_[lane] = load_slice(job_.elements, job_.type, first, packet_.end());
    });
  }

  // The step's elements; of the next step too, before this one's are looked at, where few other
  // warps have something to do meanwhile.
  LEEWAY_GPU void load(unsigned step) {
    if constexpr (!kReadsTwice) fetch(step);
    warp_.for_each_lane([&](unsigned lane) { slices_[lane] = fetched_[lane]; });
    if constexpr (kReadsTwice) {
      if (step + kStepElements < packet_.elements) fetch(step + kStepElements);
    }
    warp_.for_each_lane([&](unsigned lane) {
      if constexpr (Format::kHasBlocks) largest_[lane] = largest_magnitude(slices_[lane]);
    });
    if constexpr (Format::kHasBlocks) warp_.template spread_largest<Format::kLanes>(largest_);
  }

  // What the elements of the block at `at` are multiplied by. Its first lane writes its scale.
  LEEWAY_GPU float scale_block(unsigned lane, unsigned at) {
    if constexpr (Format::kHasBlocks) {
      const auto chosen =
          scale_of_block<which, stochastic>(scale_, job_.scale_rule, largest_[lane]);
      if (lane % Format::kLanes == 0 && at < packet_.elements) {
        store_anywhere(header_ + Format::scale_at(at), chosen.stored);
      }
      return chosen.inverse;
    } else {
      return scale_.inverse;
    }
  }

  LEEWAY_GPU void encode(unsigned lane, unsigned at, float inverse) {
    const std::uint64_t element = job_.place.first_element + packet_.first + at;
    const auto codes = encode_slice<which, stochastic>(slices_[lane], inverse, job_.place,
                                                       element / codec::kRandomBlockElements);
    LEEWAY_UNROLL
    for (unsigned i = 0; i < codes.kWords; ++i)
      buffer_.words[lane * codes.kWords + i] = codes.words[i];
  }

  LEEWAY_GPU void write_codes(unsigned step) {
    write_run(warp_, buffer_, header_ + Format::step_at(packet_.elements, step),
              Format::step_bytes(packet_.elements, step));
  }

  const Warp& warp_;
  const EncodeJob& job_;
  const PacketOfJob& packet_;
  RunBuffer& buffer_;
  std::byte* const header_;
  PacketScale scale_;
  Warp::PerLane<Slice> slices_;
  Warp::PerLane<Slice> fetched_;          // of the next step
  Warp::PerLane<std::uint32_t> largest_;  // of the lane's block
};

// The packets of one of `warps` warps.
template <Codec which, bool stochastic>
LEEWAY_GPU void encode_packets(const Warp& warp, const EncodeJob& job, unsigned index,
                               unsigned warps, RunBuffer& buffer) {
  for (unsigned packet = index; packet < job.packets.count; packet += warps) {
    PacketEncoder<which, stochastic>(warp, job, PacketOfJob(job.packets, packet), buffer).run();
  }
}

}  // namespace leeway::device_codec
