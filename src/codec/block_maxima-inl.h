// Largest magnitudes of blocks: the first of the three steps of encoding. Magnitudes are compared
// as integers, so that infinities and NaN come out largest instead of being dropped. Included once
// for every instruction set.
#if defined(LEEWAY_CODEC_BLOCK_MAXIMA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_BLOCK_MAXIMA_INL_H_
#undef LEEWAY_CODEC_BLOCK_MAXIMA_INL_H_
#else
#define LEEWAY_CODEC_BLOCK_MAXIMA_INL_H_
#endif

#include <algorithm>
#include <span>

#include <hwy/cache_control.h>

#include "codec/scaled_vectors-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

// Blocks handled together; arrays of maxima are filled up with zeros to a multiple of it.
inline constexpr std::size_t kBlocksAtOnce = 16;
inline constexpr std::size_t kCacheLineBytes = 64;

using Quarter = hn::CappedTag<std::uint32_t, 4>;

template <std::size_t block, typename T>
HWY_INLINE WordVec lane_maxima(const T* in) {
  WordVec largest = magnitude_bits(load_floats(in));
  for (std::size_t i = hn::Lanes(Floats()); i < block; i += hn::Lanes(Floats())) {
    largest = hn::Max(largest, magnitude_bits(load_floats(in + i)));
  }
  return largest;
}

// Four lanes that hold the vector's largest.
HWY_INLINE hn::Vec<Quarter> folded_to_quarter(hn::Vec<Quarter> v) {
  return v;
}
template <class V>
HWY_INLINE hn::Vec<Quarter> folded_to_quarter(V v) {
  const hn::Half<hn::DFromV<V>> half;
  return folded_to_quarter(hn::Max(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
}

// The maxima of 16 blocks whose folded lanes lie one after the other.
HWY_INLINE void finish_maxima(const std::uint32_t* folded, std::uint32_t* maxima) {
  const Words d;
  for (std::size_t b = 0; b < kBlocksAtOnce; b += hn::Lanes(d)) {
    WordVec lane0, lane1, lane2, lane3;
    hn::LoadInterleaved4(d, folded + 4 * b, lane0, lane1, lane2, lane3);
    hn::StoreU(hn::Max(hn::Max(lane0, lane1), hn::Max(lane2, lane3)), d, maxima + b);
  }
}

#if LEEWAY_RAW_AVX512

// Lanes of two vectors side by side, the larger of each pair: half as many lanes of each are left.
HWY_INLINE __m512i paired_words(__m512i a, __m512i b) {
  return _mm512_max_epu32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
HWY_INLINE __m512i paired_longs(__m512i a, __m512i b) {
  return _mm512_max_epu32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}
HWY_INLINE __m512i paired_quarters(__m512i a, __m512i b) {
  return _mm512_max_epu32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}

// Four blocks: each quarter has a lane of each.
template <std::size_t block, typename T>
HWY_INLINE __m512i maxima_of_4_blocks(const T* in) {
  const __m512i first =
      paired_words(lane_maxima<block>(in).raw, lane_maxima<block>(in + block).raw);
  const __m512i second =
      paired_words(lane_maxima<block>(in + 2 * block).raw, lane_maxima<block>(in + 3 * block).raw);
  return paired_longs(first, second);
}

// A tree that transposes while it takes maxima: 15 steps of two shuffles and a maximum for 16
// vectors, nothing through memory.
template <std::size_t block, typename T>
HWY_INLINE void maxima_of_16_blocks(const T* in, std::uint32_t* maxima) {
  const __m512i lower =
      paired_quarters(maxima_of_4_blocks<block>(in), maxima_of_4_blocks<block>(in + 4 * block));
  const __m512i upper = paired_quarters(maxima_of_4_blocks<block>(in + 8 * block),
                                        maxima_of_4_blocks<block>(in + 12 * block));
  _mm512_storeu_si512(maxima, paired_quarters(lower, upper));
}

#else

template <std::size_t block, typename T>
HWY_INLINE void maxima_of_16_blocks(const T* in, std::uint32_t* maxima) {
  alignas(64) std::uint32_t folded[4 * kBlocksAtOnce];
  for (std::size_t b = 0; b < kBlocksAtOnce; ++b) {
    hn::StoreU(folded_to_quarter(lane_maxima<block>(in + b * block)), Quarter(), folded + 4 * b);
  }
  finish_maxima(folded, maxima);
}

#endif

// What is left: up to 16 blocks, the last of which may be short.
template <std::size_t block, typename T>
void maxima_of_last_blocks(std::span<const T> in, std::uint32_t* maxima) {
  alignas(64) std::uint32_t folded[4 * kBlocksAtOnce] = {};
  std::size_t b = 0;
  for (; (b + 1) * block <= in.size(); ++b) {
    hn::StoreU(folded_to_quarter(lane_maxima<block>(in.data() + b * block)), Quarter(),
               folded + 4 * b);
  }
  if (b * block < in.size()) {
    T padded[block] = {};
    std::copy(in.begin() + static_cast<std::ptrdiff_t>(b * block), in.end(), padded);
    hn::StoreU(folded_to_quarter(lane_maxima<block>(padded)), Quarter(), folded + 4 * b);
  }
  finish_maxima(folded, maxima);
}

// Fetching the next packet while this one is worked on hides the memory's latency: its lines arrive
// during the two later steps.
template <typename T>
HWY_INLINE void fetch(const T* ahead, std::size_t count) {
  for (std::size_t i = 0; i < count; i += kCacheLineBytes / sizeof(T)) hwy::Prefetch(ahead + i);
}

// `ahead` may be null.
template <std::size_t block, typename T>
void block_maxima(std::span<const T> in, const T* ahead, std::uint32_t* maxima) {
  constexpr std::size_t kStep = block * kBlocksAtOnce;
  std::size_t i = 0;
  for (; i + kStep <= in.size(); i += kStep) {
    if (ahead != nullptr) fetch(ahead + i, kStep);
    maxima_of_16_blocks<block>(in.data() + i, maxima + i / block);
  }
  if (i == in.size()) return;
  if (ahead != nullptr) fetch(ahead + i, in.size() - i);
  maxima_of_last_blocks<block>(in.subspan(i), maxima + i / block);
}

// Of a whole packet.
template <typename T>
std::uint32_t largest_magnitude(std::span<const T> in, const T* ahead) {
  constexpr std::size_t kStep = 128;
  const Words d;
  WordVec largest = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kStep <= in.size(); i += kStep) {
    if (ahead != nullptr) fetch(ahead + i, kStep);
    largest = hn::Max(largest, lane_maxima<kStep>(in.data() + i));
  }
  T padded[kStep] = {};
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(i), in.end(), padded);
  largest = hn::Max(largest, lane_maxima<kStep>(padded));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// The largest of those that are finite.
inline std::uint32_t largest_finite(const std::uint32_t* maxima, std::size_t blocks) {
  const Words d;
  WordVec largest = hn::Zero(d);
  for (std::size_t b = 0; b < blocks; b += hn::Lanes(d)) {
    const auto amax = hn::LoadU(d, maxima + b);
    largest = hn::Max(largest, hn::IfThenElseZero(hn::Lt(amax, word(0x7F800000)), amax));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
