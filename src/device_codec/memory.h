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

// Shared memory of one warp: the bytes of one step, up to 2 for each element. A word behind the
// last is read.
struct alignas(sizeof(Quad)) RunBuffer {
  static constexpr unsigned kBytesMax = 2 * kStepElements;
  std::uint32_t words[kBytesMax / 4 + 1];

  LEEWAY_GPU std::byte byte_at(unsigned i) const {
    return static_cast<std::byte>(words[i / 4] >> (8 * (i % 4)) & 0xFF);
  }
  // Four bytes from any place.
  LEEWAY_GPU std::uint32_t word_at(unsigned byte) const {
    return shifted_right(words[byte / 4], words[byte / 4 + 1], 8 * (byte % 4));
  }
};

// How far behind a multiple of so many bytes an address lies.
LEEWAY_GPU unsigned place_in(const std::byte* at, unsigned bytes) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) % bytes);
}

// The buffer's first bytes go to a packet: whole quads at once, those before and behind them byte
// by byte, a lane each.
LEEWAY_GPU void write_run(const Warp& warp, const RunBuffer& buffer, std::byte* to,
                          unsigned bytes) {
  constexpr unsigned kHalf = Warp::kLanes / 2;
  static_assert(sizeof(Quad) == kHalf);
  const unsigned to_quad = (kHalf - place_in(to, kHalf)) % kHalf;
  const unsigned head = to_quad < bytes ? to_quad : bytes;
  const unsigned tail = (bytes - head) % kHalf;
  warp.for_each_lane([&](unsigned lane) {
    for (unsigned at = head + kHalf * lane; at + kHalf <= bytes; at += kHalf * Warp::kLanes) {
      Quad quad;
      for (unsigned i = 0; i < 4; ++i) quad.words[i] = buffer.word_at(at + 4 * i);
      store_quad(to + at, quad);
    }
    const unsigned i = lane % kHalf;
    const unsigned at = lane < kHalf ? i : bytes - tail + i;
    if (i < (lane < kHalf ? head : tail)) to[at] = buffer.byte_at(at);
  });
}

// The codes of a slice, of which so many bytes exist, at any address; the others are 0.
template <int bits>
LEEWAY_GPU SliceCodes<bits> load_codes(const std::byte* from, unsigned bytes) {
  SliceCodes<bits> codes{};
  if (bytes < sizeof codes) {
    LEEWAY_UNROLL
    for (unsigned i = 0; i < sizeof codes; ++i) {
      if (i < bytes) codes.words[i / 4] |= static_cast<std::uint32_t>(from[i]) << (8 * (i % 4));
    }
    return codes;
  }
  if (codes.kWords % 4 == 0 && is_quad_aligned(from)) {
    LEEWAY_UNROLL
    for (unsigned i = 0; i + 4 <= codes.kWords; i += 4) {
      const Quad quad = load_quad(from + sizeof(std::uint32_t) * i);
      for (unsigned j = 0; j < 4; ++j) codes.words[i + j] = quad.words[j];
    }
    return codes;
  }
  const unsigned before = place_in(from, sizeof(std::uint32_t));
  const std::byte* const words = from - before;
  std::uint32_t low = load_word_around(words, before, sizeof(std::uint32_t));
  LEEWAY_UNROLL
  for (unsigned i = 0; i < codes.kWords; ++i) {
    const bool is_last = i + 1 == codes.kWords;
    std::uint32_t high = 0;
    if (!is_last || before != 0)
      high = load_word_around(words + sizeof(std::uint32_t) * (i + 1), 0, is_last ? before : 4);
    codes.words[i] = shifted_right(low, high, 8 * before);
    low = high;
  }
  return codes;
}

// A number at any address.
template <typename T>
LEEWAY_GPU T load_anywhere(const std::byte* from) {
  if (place_in(from, sizeof(T)) == 0) return load_element<T>(from);
  struct Bytes {
    std::byte bytes[sizeof(T)];
  } all;
  LEEWAY_UNROLL
  for (unsigned i = 0; i < sizeof(T); ++i) all.bytes[i] = from[i];
  return std::bit_cast<T>(all);
}
template <typename T>
LEEWAY_GPU void store_anywhere(std::byte* to, T value) {
  if (place_in(to, sizeof(T)) == 0) return store_element(to, value);
  struct Bytes {
    std::byte bytes[sizeof(T)];
  };
  const auto all = std::bit_cast<Bytes>(value);
  LEEWAY_UNROLL
  for (unsigned i = 0; i < sizeof(T); ++i) to[i] = all.bytes[i];
}

}  // namespace leeway::device_codec
