// Moves elements of tensors between memory and registers. One lane moves a slice; a warp moves a
// step, which has a slice for each lane.
#pragma once

#include "device_codec/arithmetic.h"
#include "device_codec/gpu.h"
#include "leeway/types.h"

namespace leeway::device_codec {

// Elements in one step of a warp.
inline constexpr unsigned kStepElements = kSliceElements * Warp::kLanes;

// Loads the first `count` elements; the others are 0.
template <typename Bits>
LEEWAY_GPU SliceCodes<8 * sizeof(Bits)> load_bits(const std::byte* from, unsigned count) {
  SliceCodes<8 * sizeof(Bits)> bits{};
  if (count == kSliceElements && is_quad_aligned(from)) {
    LEEWAY_UNROLL
    for (unsigned word = 0; word < bits.kWords; word += 4) {
      const Quad quad = load_quad(from + sizeof(std::uint32_t) * word);
      for (unsigned i = 0; i < 4; ++i) bits.words[word + i] = quad.words[i];
    }
    return bits;
  }
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i) {
    if (i < count) put_code(bits, i, load_element<Bits>(from + i * sizeof(Bits)));
  }
  return bits;
}

template <typename Bits>
LEEWAY_GPU void store_bits(std::byte* to, unsigned count,
                           const SliceCodes<8 * sizeof(Bits)>& bits) {
  if (count == kSliceElements && is_quad_aligned(to)) {
    LEEWAY_UNROLL
    for (unsigned word = 0; word < bits.kWords; word += 4) {
      store_quad(to + sizeof(std::uint32_t) * word, {{bits.words[word], bits.words[word + 1],
                                                      bits.words[word + 2], bits.words[word + 3]}});
    }
    return;
  }
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kSliceElements; ++i) {
    if (i < count) store_element(to + i * sizeof(Bits), static_cast<Bits>(get_code(bits, i)));
  }
}

// Number of elements of the slice at `at`, in a packet with `elements` elements.
LEEWAY_GPU unsigned count_at(unsigned at, unsigned elements) {
  if (at >= elements) return 0;
  return elements - at < kSliceElements ? elements - at : kSliceElements;
}

// Number of leading elements that load_quads() can load: all of an aligned packet of f32, else
// none.
LEEWAY_GPU unsigned elements_in_quads(const std::byte* packet, DataType type, unsigned elements) {
  return type == DataType::f32 && is_quad_aligned(packet) ? elements : 0;
}

// Loads a slice of f32 from an aligned packet for the last time, so that caches may drop it.
LEEWAY_GPU Slice load_quads(const std::byte* packet, unsigned at) {
  SliceCodes<32> bits;
  const std::byte* const from = packet + sizeof(float) * at;
  LEEWAY_UNROLL
  for (unsigned word = 0; word < bits.kWords; word += 4) {
    const std::byte* const quad_at = from + sizeof(std::uint32_t) * word;
    const bool last = word + 4 == bits.kWords;
    const Quad quad = last ? load_quad_last_time(quad_at) : load_quad(quad_at);
    for (unsigned i = 0; i < 4; ++i) bits.words[word + i] = quad.words[i];
  }
  return std::bit_cast<Slice>(bits);
}

// Loads elements at .. at + 15 of a packet of f32, f16 or bf16 that begins at `packet` and has
// `elements` elements. Elements behind the packet's last element are loaded as 0.
LEEWAY_GPU Slice load_slice(const std::byte* packet, DataType type, unsigned at,
                            unsigned elements) {
  const unsigned count = count_at(at, elements);
  if (type == DataType::f32) {
    return std::bit_cast<Slice>(
        load_bits<std::uint32_t>(packet + sizeof(std::uint32_t) * at, count));
  }
  const auto bits = load_bits<std::uint16_t>(packet + sizeof(std::uint16_t) * at, count);
  return type == DataType::f16 ? floats_of<Half>(bits) : floats_of<BFloat16>(bits);
}

// Stores elements, rounded to the type. Nothing is stored behind the packet's last element.
LEEWAY_GPU void store_slice(std::byte* packet, DataType type, unsigned at, unsigned elements,
                            const Slice& slice) {
  const unsigned count = count_at(at, elements);
  if (type == DataType::f32) {
    store_bits<std::uint32_t>(packet + sizeof(std::uint32_t) * at, count,
                              std::bit_cast<SliceCodes<32>>(slice));
  } else {
    store_bits<std::uint16_t>(
        packet + sizeof(std::uint16_t) * at, count,
        type == DataType::f16 ? nearest<Half>(slice) : nearest<BFloat16>(slice));
  }
}

// Returns the largest magnitude, compared as integers, of an aligned packet of f32. Neighbouring
// lanes read neighbouring quads, which caches serve four times as fast as a slice for each lane.
LEEWAY_GPU std::uint32_t largest_of_quads(const Warp& warp, const std::byte* packet,
                                          unsigned elements) {
  constexpr unsigned kAtOnce = 10;  // quads in flight before the first one is used
  constexpr unsigned kBatch = kAtOnce * Warp::kLanes;
  const unsigned quads = elements / (sizeof(Quad) / sizeof(float));
  Warp::PerLane<LargestMagnitude> largest;
  const auto look_at = [&](unsigned lane, const Quad(&some)[kAtOnce]) {
    LEEWAY_UNROLL
    for (const Quad& quad : some) {
      for (const std::uint32_t bits : quad.words) largest[lane].add(bits);
    }
  };
  unsigned first = 0;
  for (; first + kBatch <= quads; first += kBatch) {
    warp.for_each_lane([&](unsigned lane) {
      const std::byte* const at = packet + sizeof(Quad) * (first + lane);
      Quad some[kAtOnce];
      LEEWAY_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i)
        some[i] = load_quad_again_soon(at + sizeof(Quad) * Warp::kLanes * i);
      look_at(lane, some);
    });
  }
  if (first < quads) {
    warp.for_each_lane([&](unsigned lane) {
      Quad some[kAtOnce];  // if there are no more, the last one again
      LEEWAY_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        const unsigned at = smaller(first + Warp::kLanes * i + lane, quads - 1);
        some[i] = load_quad_again_soon(packet + sizeof(Quad) * at);
      }
      look_at(lane, some);
    });
  }
  warp.for_each_lane([&](unsigned lane) {
    const unsigned at = elements / 4 * 4 + lane;
    if (at < elements) largest[lane].add(load_element<std::uint32_t>(packet + sizeof(float) * at));
  });
  Warp::PerLane<std::uint32_t> bits;
  warp.for_each_lane([&](unsigned lane) { bits[lane] = largest[lane].bits(); });
  warp.spread_largest<Warp::kLanes>(bits);
  std::uint32_t all = 0;
  warp.for_each_lane([&](unsigned lane) { all = bits[lane]; });
  return all;
}

// Stores the slices of complete pairs of neighbouring lanes. The two lanes of a pair exchange quads
// first, so that each store fills sectors of memory (32 bytes). Otherwise caches would have twice
// the work.
template <typename Bits>
LEEWAY_GPU void store_pairs(const Warp& warp, std::byte* packet, unsigned step, unsigned elements,
                            const Warp::PerLane<SliceCodes<8 * sizeof(Bits)>>& slices) {
  constexpr unsigned kWords = SliceCodes<8 * sizeof(Bits)>::kWords;
  constexpr unsigned kQuadWords = sizeof(Quad) / sizeof(std::uint32_t);
  LEEWAY_UNROLL
  for (unsigned i = 0; i < kWords; i += 2 * kQuadWords) {
    Warp::PerLane<Quad> of_even, of_odd;  // this lane's part of the even and the odd lane's slice
    LEEWAY_UNROLL
    for (unsigned j = i; j < i + kQuadWords; ++j) {
      Warp::PerLane<std::uint32_t> given;
      warp.for_each_lane([&](unsigned lane) {
        const std::uint32_t first = slices[lane].words[j];
        const std::uint32_t second = slices[lane].words[j + kQuadWords];
        given[lane] = lane % 2 == 0 ? second : first;
      });
      Warp::PerLane<std::uint32_t> taken = warp.exchanged(given, 1);
      warp.for_each_lane([&](unsigned lane) {
        const bool even = lane % 2 == 0;
        const std::uint32_t first = slices[lane].words[j];
        const std::uint32_t second = slices[lane].words[j + kQuadWords];
        of_even[lane].words[j - i] = even ? first : taken[lane];
        of_odd[lane].words[j - i] = even ? taken[lane] : second;
      });
    }
    warp.for_each_lane([&](unsigned lane) {
      const unsigned at = step + lane / 2 * 2 * kSliceElements;
      if (at + 2 * kSliceElements > elements) return;
      std::byte* const to =
          packet + sizeof(Bits) * at + sizeof(std::uint32_t) * i + sizeof(Quad) * (lane % 2);
      store_quad(to, of_even[lane]);
      store_quad(to + sizeof(Bits) * kSliceElements, of_odd[lane]);
    });
  }
}

// Stores the elements of a step, a slice a lane, rounded to the type. Nothing is stored behind the
// packet's last element.
LEEWAY_GPU void store_step(const Warp& warp, std::byte* packet, DataType type, unsigned step,
                           unsigned elements, const Warp::PerLane<Slice>& slices) {
  const bool aligned = is_quad_aligned(packet);
  if (aligned && type == DataType::f32) {
    Warp::PerLane<SliceCodes<32>> bits;
    warp.for_each_lane(
        [&](unsigned lane) { bits[lane] = std::bit_cast<SliceCodes<32>>(slices[lane]); });
    store_pairs<std::uint32_t>(warp, packet, step, elements, bits);
  } else if (aligned) {
    Warp::PerLane<SliceCodes<16>> bits;
    warp.for_each_lane([&](unsigned lane) {
      bits[lane] =
          type == DataType::f16 ? nearest<Half>(slices[lane]) : nearest<BFloat16>(slices[lane]);
    });
    store_pairs<std::uint16_t>(warp, packet, step, elements, bits);
  }
  // Stores what store_pairs() left: all slices if the tensor is not aligned, and a last, incomplete
  // pair.
  warp.for_each_lane([&](unsigned lane) {
    const unsigned at = step + lane * kSliceElements;
    const unsigned pair = step + lane / 2 * 2 * kSliceElements;
    if (at < elements && (!aligned || pair + 2 * kSliceElements > elements))
      store_slice(packet, type, at, elements, slices[lane]);
  });
}

}  // namespace leeway::device_codec
