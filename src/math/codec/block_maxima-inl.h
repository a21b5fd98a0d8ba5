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
#include <array>
#include <bit>
#include <span>
#include <type_traits>

#include <hwy/cache_control.h>

#include "codec/element.h"
#include "codec/scaled_vectors-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

// Blocks handled together; arrays of maxima are filled up with zeros to a multiple of it.
inline constexpr std::size_t kBlocksAtOnce = 16;
inline constexpr std::size_t kCacheLineBytes = 64;

using Quarter = hn::CappedTag<std::uint32_t, 4>;

// Returns the largest magnitude of each lane over a block.
template <std::size_t block>
HWY_INLINE WordVec lane_maxima(const float* in) {
  WordVec largest = magnitude_bits(load_floats(in));
  for (std::size_t i = hn::Lanes(Floats()); i < block; i += hn::Lanes(Floats())) {
    largest = hn::Max(largest, magnitude_bits(load_floats(in + i)));
  }
  return largest;
}

// Returns magnitudes of 16-bit elements as integers, which have the same order as the values. So a
// vector compares twice as many, and only the maxima of blocks are converted to floats.
template <typename T>
HWY_INLINE hn::Vec<Shorts> short_magnitudes(const T* in) {
  const auto bits = load_unaligned(Shorts(), reinterpret_cast<const std::byte*>(in));
  return hn::And(bits, hn::Set(Shorts(), 0x7FFF));
}
template <std::size_t block, typename T>
HWY_INLINE hn::Vec<Shorts> short_lane_maxima(const T* in) {
  auto largest = short_magnitudes(in);
  for (std::size_t i = hn::Lanes(Shorts()); i < block; i += hn::Lanes(Shorts()))
    largest = hn::Max(largest, short_magnitudes(in + i));
  return largest;
}
template <std::size_t block, typename T>
HWY_INLINE WordVec lane_maxima(const T* in) {
  static_assert(sizeof(T) == 2);
  const auto pairs = hn::BitCast(Words(), short_lane_maxima<block>(in));
  return hn::Max(hn::And(pairs, word(0xFFFF)), hn::ShiftRight<16>(pairs));
}

// Converts the maxima that lane_maxima() returns to bits of float32.
template <typename T>
HWY_INLINE WordVec float_maxima(WordVec maxima) {
  if constexpr (std::is_same_v<T, BFloat16>) return hn::ShiftLeft<16>(maxima);
  if constexpr (std::is_same_v<T, Half>) return bits_of(floats_of_halves(Floats(), maxima));
  return maxima;
}

// Returns four lanes. The largest of them is the largest lane of `v`.
HWY_INLINE hn::Vec<Quarter> folded_to_quarter(hn::Vec<Quarter> v) {
  return v;
}
template <class V>
HWY_INLINE hn::Vec<Quarter> folded_to_quarter(V v) {
  const hn::Half<hn::DFromV<V>> half;
  return folded_to_quarter(hn::Max(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
}

// Computes the maxima of 16 blocks. `folded` has four values of each block (folded_to_quarter()).
template <typename T>
HWY_INLINE void finish_maxima(const std::uint32_t* folded, std::uint32_t* maxima) {
  const Words d;
  for (std::size_t b = 0; b < kBlocksAtOnce; b += hn::Lanes(d)) {
    WordVec lane0, lane1, lane2, lane3;
    hn::LoadInterleaved4(d, folded + 4 * b, lane0, lane1, lane2, lane3);
    const auto largest = hn::Max(hn::Max(lane0, lane1), hn::Max(lane2, lane3));
    hn::StoreU(float_maxima<T>(largest), d, maxima + b);
  }
}

#if LEEWAY_RAW_AVX512

// Folds two vectors into one. The lanes of the result come from `a` and `b` in turn, and each is
// the larger of two lanes.
HWY_INLINE __m512i paired_words(__m512i a, __m512i b) {
  return _mm512_max_epu32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
HWY_INLINE __m512i paired_longs(__m512i a, __m512i b) {
  return _mm512_max_epu32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}
HWY_INLINE __m512i paired_quarters(__m512i a, __m512i b) {
  return _mm512_max_epu32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}

// Folds four blocks into one vector. Each quarter of it has one lane of each block.
template <std::size_t block>
HWY_INLINE __m512i maxima_of_4_blocks(const float* in) {
  const __m512i first =
      paired_words(lane_maxima<block>(in).raw, lane_maxima<block>(in + block).raw);
  const __m512i second =
      paired_words(lane_maxima<block>(in + 2 * block).raw, lane_maxima<block>(in + 3 * block).raw);
  return paired_longs(first, second);
}

// Writes the maxima of 16 blocks. It transposes while it takes maxima, in registers: 16 vectors
// take 15 steps, each of two shuffles and a maximum.
template <std::size_t block>
HWY_INLINE void maxima_of_16_float_blocks(const float* in, std::uint32_t* maxima) {
  const __m512i lower =
      paired_quarters(maxima_of_4_blocks<block>(in), maxima_of_4_blocks<block>(in + 4 * block));
  const __m512i upper = paired_quarters(maxima_of_4_blocks<block>(in + 8 * block),
                                        maxima_of_4_blocks<block>(in + 12 * block));
  _mm512_storeu_si512(maxima, paired_quarters(lower, upper));
}

// As paired_words() for 16-bit lanes: they come from `a` and `b` in turn, each the larger of two.
HWY_INLINE __m512i paired_shorts(__m512i a, __m512i b) {
  return _mm512_max_epu16(_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b));
}
HWY_INLINE __m512i paired_short_pairs(__m512i a, __m512i b) {
  return _mm512_max_epu16(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
HWY_INLINE __m512i paired_short_fours(__m512i a, __m512i b) {
  return _mm512_max_epu16(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

// Returns the permutation that moves the maximum of block b to the lower half of 32-bit lane b.
// Before it, the maximum of block 2k is in place k of the first quarter of 16-bit lanes, and that
// of block 2k + 1 in place k of the third quarter.
constexpr std::array<std::uint16_t, 32> short_maxima_places() {
  std::array<std::uint16_t, 32> places{};
  for (std::uint16_t b = 0; b < 16; ++b)
    places[2 * b] = static_cast<std::uint16_t>(b / 2 + b % 2 * 16);
  return places;
}

// Folds two blocks into one vector: 16 lanes of the first block, then 16 of the second.
template <std::size_t block, typename T>
HWY_INLINE __m512i maxima_of_2_short_blocks(const T* in) {
  if constexpr (block == 16) return short_magnitudes(in).raw;
  const __m512i first = short_lane_maxima<block>(in).raw;
  const __m512i second = short_lane_maxima<block>(in + block).raw;
  return _mm512_max_epu16(_mm512_shuffle_i64x2(first, second, 0x44),
                          _mm512_shuffle_i64x2(first, second, 0xEE));
}

// As maxima_of_16_float_blocks(), with half as many steps, because a vector has twice as many
// elements.
template <std::size_t block, typename T>
HWY_INLINE void maxima_of_16_short_blocks(const T* in, std::uint32_t* maxima) {
  alignas(64) static constexpr std::array<std::uint16_t, 32> kPlaces = short_maxima_places();
  const auto four_blocks = [in](std::size_t first) HWY_ATTR {
    return paired_shorts(maxima_of_2_short_blocks<block>(in + block * first),
                         maxima_of_2_short_blocks<block>(in + block * (first + 2)));
  };
  const __m512i lower = paired_short_pairs(four_blocks(0), four_blocks(4));
  const __m512i upper = paired_short_pairs(four_blocks(8), four_blocks(12));
  const __m512i quarters = paired_short_fours(lower, upper);
  const __m512i halves = _mm512_max_epu16(quarters, _mm512_shuffle_i32x4(quarters, quarters, 0xB1));
  const __m512i ordered =
      _mm512_maskz_permutexvar_epi16(0x55555555, _mm512_load_si512(kPlaces.data()), halves);
  _mm512_storeu_si512(maxima, float_maxima<T>(WordVec{ordered}).raw);
}

template <std::size_t block, typename T>
HWY_INLINE void maxima_of_16_blocks(const T* in, std::uint32_t* maxima) {
  if constexpr (sizeof(T) == 2) {
    maxima_of_16_short_blocks<block>(in, maxima);
  } else {
    maxima_of_16_float_blocks<block>(in, maxima);
  }
}

#else

template <std::size_t block, typename T>
HWY_INLINE void maxima_of_16_blocks(const T* in, std::uint32_t* maxima) {
  alignas(64) std::uint32_t folded[4 * kBlocksAtOnce];
  for (std::size_t b = 0; b < kBlocksAtOnce; ++b) {
    hn::StoreU(folded_to_quarter(lane_maxima<block>(in + b * block)), Quarter(), folded + 4 * b);
  }
  finish_maxima<T>(folded, maxima);
}

#endif

// Maxima of the remaining blocks, at most 16; the last one may be short.
template <std::size_t block, typename T>
void maxima_of_last_blocks(std::span<const T> in, std::uint32_t* maxima) {
  alignas(64) std::uint32_t folded[4 * kBlocksAtOnce] = {};
  constexpr std::size_t kVector = 64 / sizeof(T);  // elements of the longest vector
  for (std::size_t b = 0; b * block < in.size(); ++b) {
    const T* values = in.data() + b * block;
    const std::size_t count = std::min(block, in.size() - b * block);
    T padded[std::max(block, kVector)] = {};
    if (count < block || block < kVector) values = std::copy_n(values, count, padded) - count;
    hn::StoreU(folded_to_quarter(lane_maxima<block>(values)), Quarter(), folded + 4 * b);
  }
  finish_maxima<T>(folded, maxima);
}

// Prefetches part of the next packet, which then arrives during the two later steps of encoding.
template <typename T>
HWY_INLINE void fetch(const T* ahead, std::size_t count) {
  for (std::size_t i = 0; i < count; i += kCacheLineBytes / sizeof(T)) hwy::Prefetch(ahead + i);
}

// Writes each block's largest magnitude. `ahead`: the next packet, or null.
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

// The largest magnitude of a whole packet.
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
  return hn::GetLane(float_maxima<T>(hn::MaxOfLanes(d, largest)));
}

// The largest finite one among the maxima.
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
