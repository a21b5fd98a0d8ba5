// Moves encoded bytes between registers and packets, which lie at any address. On their way out
// they pass through shared memory, where each lane has words of its own.
#pragma once

#include "device_codec/elements.h"

namespace leeway::device_codec {

// Distance of an address from the last multiple of `bytes`.
LEEWAY_GPU unsigned place_in(const std::byte* at, unsigned bytes) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) % bytes);
}

// Shared memory of one warp. It has the codes of a step, after those codes of the step before that
// did not fill a quad.
template <int bits>
struct alignas(sizeof(Quad)) RunBuffer {
  static constexpr unsigned kQuads = kStepElements * bits / 8 / sizeof(Quad);  // in a step
  std::uint32_t words[4 * (kQuads + 1)];

  LEEWAY_GPU std::byte byte_at(unsigned i) const {
    return static_cast<std::byte>(words[i / 4] >> (8 * (i % 4)) & 0xFF);
  }
  LEEWAY_GPU Quad quad_at(unsigned i) const {
    return {{words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]}};
  }
};

// Writes codes, step by step, to a packet at any address, in whole quads. Lanes shift their words
// to where these will lie in quads, and put them side by side in the buffer. Words that fill no
// quad wait there for the next step. The bytes before the first quad and behind the last are stored
// one by one.
template <int bits>
class RunWriter {
 public:
  using Codes = SliceCodes<bits>;

  LEEWAY_GPU RunWriter(const Warp& warp, RunBuffer<bits>& buffer, std::byte* to)
      : warp_(warp), buffer_(buffer), before_(place_in(to, sizeof(Quad))), to_(to - before_) {}

  // Writes the first `bytes` bytes of a step's codes. Only the last step may be shorter.
  LEEWAY_GPU void write(Warp::PerLane<Codes>& codes, unsigned bytes, bool last) {
    put(codes);
    warp_.sync();
    flush(bytes, last);
    warp_.sync();
  }

 private:
  static constexpr unsigned kQuadBytes = sizeof(Quad);
  static constexpr unsigned kStepBytes = kStepElements * bits / 8;
  static constexpr unsigned kLastWord = Codes::kWords - 1;
  static_assert(kStepBytes % kQuadBytes == 0);

  LEEWAY_GPU void put(Warp::PerLane<Codes>& codes) {
    Warp::PerLane<std::uint32_t> own;
    warp_.for_each_lane([&](unsigned lane) { own[lane] = codes[lane].words[kLastWord]; });
    const Warp::PerLane<std::uint32_t> before = warp_.of_lanes_before(own);
    const unsigned shift = 8 * (before_ % 4);
    warp_.for_each_lane([&](unsigned lane) {
      std::uint32_t* const words = buffer_.words + before_ / 4 + lane * Codes::kWords;
      std::uint32_t low = lane == 0 ? carried_[lane] : before[lane];
      LEEWAY_UNROLL
      for (unsigned i = 0; i < Codes::kWords; ++i) {
        words[i] = shifted_left(low, codes[lane].words[i], shift);
        low = codes[lane].words[i];
      }
      if (lane == Warp::kLanes - 1) words[Codes::kWords] = shifted_left(low, 0, shift);
      if (lane < before_ / 4) buffer_.words[lane] = waiting_[lane];
      carried_[lane] = before[lane];  // in lane 0 it is the word of the last lane
    });
  }

  LEEWAY_GPU void flush(unsigned bytes, bool last) {
    const unsigned begin = fresh_ ? before_ : 0;
    const unsigned end = before_ + bytes;
    warp_.for_each_lane([&](unsigned lane) {
      LEEWAY_UNROLL
      for (unsigned i = 0; i < buffer_.kQuads + 1; i += Warp::kLanes) {
        const unsigned at = kQuadBytes * (i + lane);
        if (at >= begin && at + kQuadBytes <= end) store_quad(to_ + at, buffer_.quad_at(i + lane));
      }
      if (begin != 0 && lane >= begin && lane < kQuadBytes && lane < end)
        to_[lane] = buffer_.byte_at(lane);
      if (last) {
        const unsigned at = end / kQuadBytes * kQuadBytes + lane;
        if (at < end && (at >= kQuadBytes || begin == 0)) to_[at] = buffer_.byte_at(at);
      } else if (lane < before_ / 4) {
        waiting_[lane] = buffer_.words[kStepBytes / 4 + lane];
      }
    });
    to_ += kStepBytes;
    fresh_ = false;
  }

  const Warp& warp_;
  RunBuffer<bits>& buffer_;
  const unsigned before_;                 // bytes between a quad's begin and the packet's codes
  std::byte* to_;                         // where the buffer's first byte goes
  bool fresh_ = true;                     // no quad has been stored
  Warp::PerLane<std::uint32_t> carried_;  // lane 0 has the previous step's last word
  Warp::PerLane<std::uint32_t> waiting_;  // whole words that wait, one in a lane
};

// The aligned words around a slice's codes, which lie at any address. A lane loads them for several
// slices before it uses the first.
template <int bits>
class CodeWords {
 public:
  using Codes = SliceCodes<bits>;

  // Loads all bytes that `Codes` has.
  LEEWAY_GPU void load(const std::byte* from) {
    before_ = place_in(from, sizeof(std::uint32_t));
    const std::byte* const at = from - before_;
    if (Codes::kWords % 4 == 0 && is_quad_aligned(from)) {
      LEEWAY_UNROLL
      for (unsigned i = 0; i + 4 <= Codes::kWords; i += 4) {
        const Quad quad = load_quad(at + sizeof(std::uint32_t) * i);
        for (unsigned j = 0; j < 4; ++j) words_[i + j] = quad.words[j];
      }
      return;
    }
    LEEWAY_UNROLL
    for (unsigned i = 0; i < Codes::kWords; ++i)
      words_[i] = load_word_around(at + sizeof(std::uint32_t) * i, i == 0 ? before_ : 0, 4);
    if (before_ != 0) {
      words_[Codes::kWords] =
          load_word_around(at + sizeof(std::uint32_t) * Codes::kWords, 0, before_);
    }
  }

  // Loads the first `bytes` bytes; the others are 0.
  LEEWAY_GPU void load_some(const std::byte* from, unsigned bytes) {
    before_ = 0;
    LEEWAY_UNROLL
    for (std::uint32_t& word : words_) word = 0;
    LEEWAY_UNROLL
    for (unsigned i = 0; i < sizeof(Codes); ++i) {
      if (i < bytes) {
        words_[i / 4] |= static_cast<std::uint32_t>(load_element<std::uint8_t>(from + i))
                         << (8 * (i % 4));
      }
    }
  }

  LEEWAY_GPU Codes codes() const {
    Codes codes;
    LEEWAY_UNROLL
    for (unsigned i = 0; i < Codes::kWords; ++i)
      codes.words[i] = shifted_right(words_[i], words_[i + 1], 8 * before_);
    return codes;
  }

 private:
  unsigned before_ = 0;  // bytes between the first word's begin and the codes
  std::uint32_t words_[Codes::kWords + 1] = {};
};

// Load and store a number at any address.
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
