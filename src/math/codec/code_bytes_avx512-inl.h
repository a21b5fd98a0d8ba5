// The packer of code_bytes-inl.h in AVX-512: permutations of two vectors and saturating packs,
// which Highway does not have. Included once for every instruction set; empty for the others.
//
// Between its steps bytes stand by quarters: quarter q of 16 bytes has the elements 4q .. 4q + 3 of
// the first vector, then those of the second, third and fourth. Saturating packs work within
// quarters, so only one permutation, at the end, restores the order.
#if defined(LEEWAY_CODEC_CODE_BYTES_AVX512_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_CODE_BYTES_AVX512_INL_H_
#undef LEEWAY_CODEC_CODE_BYTES_AVX512_INL_H_
#else
#define LEEWAY_CODEC_CODE_BYTES_AVX512_INL_H_
#endif

#include <array>

#include "codec/code_bytes-inl.h"
#include "codec/minifloat-inl.h"
#include "codec/philox-inl.h"
#include "codec/scaled_vectors-inl.h"

#if LEEWAY_RAW_AVX512
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

using Shorts32 = std::array<std::uint16_t, 32>;
using Words16 = std::array<std::uint32_t, 16>;

// Lower 16-bit halves of lanes: quarter q gets elements 4q .. 4q + 3 of the first vector, then of
// the second.
constexpr Shorts32 lower_half_indices() {
  Shorts32 from{};
  for (std::uint16_t i = 0; i < 32; ++i) {
    const int element = i / 8 * 4 + i % 4;
    from[i] = static_cast<std::uint16_t>((i % 8 < 4 ? 0 : 32) + 2 * element);
  }
  return from;
}
// Indices that restore the order: elements 4q .. 4q + 3 of vector k are at place k of quarter q.
constexpr Words16 four_vector_indices() {
  Words16 from{};
  for (std::uint32_t i = 0; i < 16; ++i) from[i] = i % 4 * 4 + i / 4;
  return from;
}
constexpr Shorts32 eight_vector_indices() {
  Shorts32 from{};
  for (std::uint16_t i = 0; i < 32; ++i) from[i] = static_cast<std::uint16_t>(i % 4 * 8 + i / 4);
  return from;
}
// Upper bytes of 16-bit lanes: each quarter gets eight of the first vector, then eight of the
// second.
constexpr std::array<std::uint8_t, 64> upper_byte_indices() {
  std::array<std::uint8_t, 64> from{};
  for (std::uint8_t i = 0; i < 64; ++i)
    from[i] = static_cast<std::uint8_t>(i % 16 / 8 * 64 + i / 16 * 16 + i % 8 * 2 + 1);
  return from;
}

class QuarterPacker {
 public:
  QuarterPacker()
      : lower_halves_(_mm512_load_si512(kLowerHalves.data())),
        four_vectors_(_mm512_load_si512(kFourVectors.data())),
        eight_vectors_(_mm512_load_si512(kEightVectors.data())),
        upper_bytes_(_mm512_load_si512(kUpperBytes.data())) {}

  // Draws random bytes, which stand by quarters, too.
  static HWY_INLINE void draw(const Place& place, std::uint32_t draw, std::uint64_t first,
                              std::size_t blocks, std::uint8_t* out) {
    const QuarterDraws draws(place, stream_tag(kRoundingStream, draw));
    for (std::size_t b = 0; b < blocks; b += QuarterDraws::kBlocks)
      draws.draw(first + b, out + b * kRandomBlockElements);
  }

  template <Minifloat element, bool stochastic>
  HWY_INLINE ByteVec codes(FloatVec v0, FloatVec v1, FloatVec v2, FloatVec v3,
                           const std::uint8_t* random) const {
    constexpr int kFraction = stochastic ? 8 : 0;
    __m512i v01 =
        lower_halves(quanta_codes<element, kFraction>(v0), quanta_codes<element, kFraction>(v1));
    __m512i v23 =
        lower_halves(quanta_codes<element, kFraction>(v2), quanta_codes<element, kFraction>(v3));
    if constexpr (stochastic) {
      const __m512i bytes = _mm512_loadu_si512(random);
      v01 = _mm512_add_epi16(v01, _mm512_unpacklo_epi8(bytes, _mm512_setzero_si512()));
      v23 = _mm512_add_epi16(v23, _mm512_unpackhi_epi8(bytes, _mm512_setzero_si512()));
    }
    // Saturation keeps each lane's sign, also that of -0, whose bits are the smallest integer.
    const __m512i sign01 = _mm512_packs_epi32(bits_of(v0).raw, bits_of(v1).raw);
    const __m512i sign23 = _mm512_packs_epi32(bits_of(v2).raw, bits_of(v3).raw);
    return with_signs<element>(ByteVec{packed<stochastic>(v01, v23)},
                               ByteVec{_mm512_packs_epi16(sign01, sign23)});
  }

  template <Minifloat element>
  HWY_INLINE void store(ByteVec a, ByteVec b, std::byte* to) const {
    if constexpr (element.code_bits == 8) {
      _mm512_storeu_si512(to, restored(a));
      _mm512_storeu_si512(to + 64, restored(b));
    } else if constexpr (element.code_bits == 6) {
      store_sixes(restored(a), to);
      store_sixes(restored(b), to + 48);
    } else {
      // Two codes make one byte, c0 + 16 c1. The permutation then moves two bytes at a time.
      const __m512i weights = _mm512_set1_epi16(0x1001);
      const __m512i packed = _mm512_packus_epi16(_mm512_maddubs_epi16(a.raw, weights),
                                                 _mm512_maddubs_epi16(b.raw, weights));
      _mm512_storeu_si512(to, _mm512_permutexvar_epi16(eight_vectors_, packed));
    }
  }

 private:
  alignas(64) static constexpr Shorts32 kLowerHalves = lower_half_indices();
  alignas(64) static constexpr Words16 kFourVectors = four_vector_indices();
  alignas(64) static constexpr Shorts32 kEightVectors = eight_vector_indices();
  alignas(64) static constexpr std::array<std::uint8_t, 64> kUpperBytes = upper_byte_indices();

  HWY_INLINE __m512i lower_halves(WordVec a, WordVec b) const {
    return _mm512_permutex2var_epi16(a.raw, lower_halves_, b.raw);
  }
  // Packs the upper or lower bytes of 16-bit halves. For the lower ones, the upper bytes must be 0.
  template <bool upper>
  HWY_INLINE __m512i packed(__m512i a, __m512i b) const {
    if constexpr (!upper) return _mm512_packus_epi16(a, b);
#if LEEWAY_RAW_VBMI
    return _mm512_permutex2var_epi8(a, upper_bytes_, b);
#else
    return _mm512_packus_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8));
#endif
  }
  HWY_INLINE __m512i restored(ByteVec v) const {
    return _mm512_permutexvar_epi32(four_vectors_, v.raw);
  }

  // Packs each four codes into 24 bits, by multiplying and adding neighbours twice, then stores
  // three of every four bytes.
  static HWY_INLINE void store_sixes(__m512i codes, std::byte* to) {
    const __m512i pairs = _mm512_maddubs_epi16(codes, _mm512_set1_epi16(0x4001));  // c0 + 2^6 c1
    const __m512i fours =
        _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x10000001));  // + 2^12 (c2 + 2^6 c3)
    const __m128i three_of_four =
        _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m512i packed = _mm512_shuffle_epi8(fours, _mm512_broadcast_i32x4(three_of_four));
    const __m512i order = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0);
    _mm512_mask_storeu_epi32(to, 0x0FFF, _mm512_permutexvar_epi32(order, packed));
  }

  __m512i lower_halves_;
  __m512i four_vectors_;
  __m512i eight_vectors_;
  [[maybe_unused]] __m512i upper_bytes_;
};

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
