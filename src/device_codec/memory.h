// Slices of a tensor between memory and registers, and runs of encoded bytes between packets, which
// lie at any address, and shared memory, where each lane has words of its own.
#pragma once

#include "device_codec/arithmetic.h"
#include "device_codec/gpu.h"
#include "leeway/types.h"

namespace leeway::device_codec {

// Elements of one step of a warp.
inline constexpr unsigned kStepElements = kSliceElements * Warp::kLanes;

// ---- elements of tensors ----

// The first `count` elements; the others are 0.
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

LEEWAY_GPU unsigned count_between(std::uint64_t first, std::uint64_t end) {
  if (first >= end) return 0;
  return end - first < kSliceElements ? static_cast<unsigned>(end - first) : kSliceElements;
}

// Elements first .. first + 15 of a tensor of f32, f16 or bf16; 0 from `end` on.
LEEWAY_GPU Slice load_slice(const std::byte* elements, DataType type, std::uint64_t first,
                            std::uint64_t end) {
  const unsigned count = count_between(first, end);
  if (type == DataType::f32)
    return std::bit_cast<Slice>(load_bits<std::uint32_t>(elements + 4 * first, count));
  const auto bits = load_bits<std::uint16_t>(elements + 2 * first, count);
  return type == DataType::f16 ? floats_of<Half>(bits) : floats_of<BFloat16>(bits);
}

// Rounded to the type. Nothing is stored from `end` on.
LEEWAY_GPU void store_slice(std::byte* elements, DataType type, std::uint64_t first,
                            std::uint64_t end, const Slice& slice) {
  const unsigned count = count_between(first, end);
  if (type == DataType::f32) {
    store_bits<std::uint32_t>(elements + 4 * first, count, std::bit_cast<SliceCodes<32>>(slice));
  } else {
    store_bits<std::uint16_t>(
        elements + 2 * first, count,
        type == DataType::f16 ? nearest<Half>(slice) : nearest<BFloat16>(slice));
  }
}

// ---- encoded bytes ----

// Shared memory of one warp: the bytes of one step, up to 2 for each element. They may lie behind
// up to 15 others, and a word behind the last is read.
struct alignas(sizeof(Quad)) RunBuffer {
  static constexpr unsigned kBytesMax = 2 * kStepElements;
  std::uint32_t words[kBytesMax / 4 + 8];

  LEEWAY_GPU std::byte* bytes() { return reinterpret_cast<std::byte*>(words); }
  // Four bytes from any place.
  LEEWAY_GPU std::uint32_t word_at(unsigned byte) const {
    const std::uint64_t two =
        std::uint64_t{words[byte / 4 + 1]} << 32 | std::uint64_t{words[byte / 4]};
    return static_cast<std::uint32_t>(two >> (8 * (byte % 4)));
  }
};

// How a run of bytes lies over the quads of memory.
struct QuadsOfRun {
  unsigned shift;  // bytes of the first quad that lie before the run
  unsigned quads;

  LEEWAY_GPU QuadsOfRun(const std::byte* at, unsigned bytes)
      : shift(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) % sizeof(Quad))),
        quads(static_cast<unsigned>((shift + bytes + sizeof(Quad) - 1) / sizeof(Quad))) {}
};

// The buffer's first bytes go to a packet: whole quads at once, the rest of it byte by byte.
LEEWAY_GPU void write_run(const Warp& warp, RunBuffer& buffer, std::byte* to, unsigned bytes) {
  const QuadsOfRun run(to, bytes);
  warp.for_each_lane([&](unsigned lane) {
    for (unsigned q = lane; q < run.quads; q += Warp::kLanes) {
      const int first = static_cast<int>(16 * q) - static_cast<int>(run.shift);
      const int end = first + 16;
      if (first >= 0 && end <= static_cast<int>(bytes)) {
        Quad quad;
        for (unsigned i = 0; i < 4; ++i)
          quad.words[i] = buffer.word_at(static_cast<unsigned>(first) + 4 * i);
        store_quad(to + first, quad);
        continue;
      }
      for (int i = first < 0 ? 0 : first; i < end && i < static_cast<int>(bytes); ++i)
        to[i] = buffer.bytes()[i];
    }
  });
}

// Bytes of a packet go to the buffer. Returns where the first of them lies there.
LEEWAY_GPU unsigned read_run(const Warp& warp, RunBuffer& buffer, const std::byte* from,
                             unsigned bytes) {
  const QuadsOfRun run(from, bytes);
  warp.for_each_lane([&](unsigned lane) {
    for (unsigned q = lane; q < run.quads; q += Warp::kLanes) {
      const int first = static_cast<int>(16 * q) - static_cast<int>(run.shift);
      const int end = first + 16;
      if (first >= 0 && end <= static_cast<int>(bytes)) {
        store_quad(buffer.bytes() + sizeof(Quad) * q, load_quad(from + first));
        continue;
      }
      for (int i = first < 0 ? 0 : first; i < end && i < static_cast<int>(bytes); ++i)
        buffer.bytes()[run.shift + static_cast<unsigned>(i)] = from[i];
    }
  });
  return run.shift;
}

// A number at any address.
template <typename T>
LEEWAY_GPU T load_anywhere(const std::byte* from) {
  struct Bytes {
    std::byte bytes[sizeof(T)];
  } all;
  LEEWAY_UNROLL
  for (unsigned i = 0; i < sizeof(T); ++i) all.bytes[i] = from[i];
  return std::bit_cast<T>(all);
}
template <typename T>
LEEWAY_GPU void store_anywhere(std::byte* to, T value) {
  struct Bytes {
    std::byte bytes[sizeof(T)];
  };
  const auto all = std::bit_cast<Bytes>(value);
  LEEWAY_UNROLL
  for (unsigned i = 0; i < sizeof(T); ++i) to[i] = all.bytes[i];
}

}  // namespace leeway::device_codec
