// The randomised Hadamard transform of src/math/codec/rotation.h, with one warp a packet, and 16
// lanes a block of 256 elements. Strides ascend, and each butterfly rounds sums and differences of
// the same values as rotation.h does, so the bits are the same.
#pragma once

#include "codec/random_bytes.h"
#include "codec/rotation.h"
#include "device_codec/formats.h"

namespace leeway::device_codec {

// The signs of the slice at `element` of the tensor, in the lowest 16 bits.
LEEWAY_GPU std::uint32_t signs_at(const codec::Place& place, std::uint64_t element) {
  const PhiloxCounter signs = codec::signs_of_group(place, element / codec::kSignGroup);
  const auto at = static_cast<unsigned>(element % codec::kSignGroup);
  // Chooses the word by comparisons, because registers cannot be indexed.
  const std::uint32_t low = at < 32 ? signs[0] : signs[1];
  const std::uint32_t high = at < 96 ? signs[2] : signs[3];
  return (at < 64 ? low : high) >> at % 32;
}

LEEWAY_GPU void flip(std::uint32_t signs, Slice& slice) {
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i) {
    slice.values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(slice.values[i]) ^
                                           (signs >> i & 1) << 31);
  }
}

// Returns the length of the transformed block that has element `at` of a packet of `elements`.
// Blocks have 256 elements. The elements behind the last whole block are cut into one block for
// each set bit of their number, the longest first.
LEEWAY_GPU unsigned length_of_block(unsigned at, unsigned elements) {
  const unsigned length = std::bit_floor(at ^ elements);
  return length < codec::kRotationElements ? length : codec::kRotationElements;
}

// Transforms strides below 16, within one lane. At a packet's end a lane holds parts of several
// short blocks.
LEEWAY_GPU void transform_slice(unsigned at, unsigned elements, Slice& slice) {
  const unsigned whole = length_of_block(at, elements);
  unsigned lengths[kSliceElements];
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i) {
    lengths[i] = whole >= kSliceElements ? whole : length_of_block(at + i, elements);
    slice.values[i] *= codec::rotation_factor(lengths[i]);
  }
  LEEWAY_UNROLL
  for (unsigned stride = 1; stride < kSliceElements; stride *= 2) {
    LEEWAY_UNROLL
    for (unsigned i = 0; i < kSliceElements; ++i) {
      if ((i & stride) != 0 || stride >= lengths[i]) continue;
      const float low = slice.values[i];
      const float high = slice.values[i + stride];
      slice.values[i] = low + high;
      slice.values[i + stride] = low - high;
    }
  }
}

template <bool forward>
class PacketRotation {
 public:
  LEEWAY_GPU PacketRotation(const Warp& warp, const RotateJob& job, const PacketOfJob& packet)
      : warp_(warp), job_(job), packet_(packet) {}

  LEEWAY_GPU void run() {
    for (unsigned step = 0; step < packet_.elements; step += kStepElements) {
      begin(step);
      for (unsigned lanes = 1; lanes < codec::kRotationElements / kSliceElements; lanes *= 2)
        exchange(step, lanes);
      end(step);
    }
  }

 private:
  LEEWAY_GPU void begin(unsigned step) {
    warp_.for_each_lane([&](unsigned lane) {
      const unsigned at = step + lane * kSliceElements;
      Slice& slice = slices_[lane];
      slice =
          load_slice(packet_.in(job_.elements, DataType::f32), DataType::f32, at, packet_.elements);
      if constexpr (forward) flip(signs(at), slice);
      transform_slice(at, packet_.elements, slice);
    });
  }

  // Makes the butterflies between lanes that are `lanes` apart. Leaves out blocks that are too
  // short to reach so far.
  LEEWAY_GPU void exchange(unsigned step, unsigned lanes) {
    LEEWAY_UNROLL
    for (unsigned i = 0; i < kSliceElements; ++i) {
      Warp::PerLane<float> own;
      warp_.for_each_lane([&](unsigned lane) { own[lane] = slices_[lane].values[i]; });
      Warp::PerLane<float> others = warp_.exchanged(own, lanes);
      warp_.for_each_lane([&](unsigned lane) {
        const unsigned at = step + lane * kSliceElements;
        if (lanes * kSliceElements >= length_of_block(at, packet_.elements)) return;
        const bool second = (lane & lanes) != 0;
        slices_[lane].values[i] = second ? others[lane] - own[lane] : own[lane] + others[lane];
      });
    }
  }

  LEEWAY_GPU void end(unsigned step) {
    warp_.for_each_lane([&](unsigned lane) {
      const unsigned at = step + lane * kSliceElements;
      if constexpr (!forward) flip(signs(at), slices_[lane]);
      store_slice(packet_.in(job_.out, DataType::f32), DataType::f32, at, packet_.elements,
                  slices_[lane]);
    });
  }

  LEEWAY_GPU std::uint32_t signs(unsigned at) const {
    return signs_at(job_.place, job_.place.first_element + packet_.first + at);
  }

  const Warp& warp_;
  const RotateJob& job_;
  const PacketOfJob& packet_;
  Warp::PerLane<Slice> slices_;
};

// Rotates those packets of the job that fall to warp `index` of `warps`.
template <bool forward>
LEEWAY_GPU void rotate_packets(const Warp& warp, const RotateJob& job, unsigned index,
                               unsigned warps) {
  for (unsigned packet = index; packet < job.packets.count; packet += warps)
    PacketRotation<forward>(warp, job, PacketOfJob(job.packets, packet)).run();
}

}  // namespace leeway::device_codec
