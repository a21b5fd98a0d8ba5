// Random bytes of many blocks at once: the same Philox4x32-10 words as random_bytes.h, several
// counters side by side. Included once for every instruction set.
#if defined(LEEWAY_CODEC_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_PHILOX_INL_H_
#undef LEEWAY_CODEC_PHILOX_INL_H_
#else
#define LEEWAY_CODEC_PHILOX_INL_H_
#endif

#include "codec/random_bytes.h"
#include "codec/scaled_vectors-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

using LongWords = hn::Repartition<std::uint64_t, Floats>;
using LongVec = hn::Vec<LongWords>;

constexpr PhiloxKey next_key(PhiloxKey key) {
  return {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
}

// A counter per 64-bit lane, each word in the lower half of its own vector; the upper halves hold
// leftovers that no operation reads. So a round is two multiplications, two shifts and two
// exclusive ors, without shuffles.
HWY_INLINE void philox_round(PhiloxKey key, LongVec& c0, LongVec& c1, LongVec& c2, LongVec& c3) {
  const LongWords d;
  const auto product0 = hn::MulEven(hn::BitCast(Words(), c0), word(0xD2511F53));
  const auto product1 = hn::MulEven(hn::BitCast(Words(), c2), word(0xCD9E8D57));
  c0 = hn::Xor3(hn::ShiftRight<32>(product1), c1, hn::Set(d, std::uint64_t{key[0]}));
  c2 = hn::Xor3(hn::ShiftRight<32>(product0), c3, hn::Set(d, std::uint64_t{key[1]}));
  c1 = product1;
  c3 = product0;
}

// Sets the counters of a vector of blocks. Lane i is for block first + order[i].
HWY_INLINE void random_counters(const Place& place, std::uint32_t tag, std::uint64_t first,
                                LongVec order, LongVec& c0, LongVec& c1, LongVec& c2, LongVec& c3) {
  const LongWords d;
  c0 = hn::Add(hn::Set(d, first), order);
  c1 = hn::Or(hn::And(hn::ShiftRight<32>(c0), hn::Set(d, std::uint64_t{0xFFFFFF})),
              hn::Set(d, std::uint64_t{tag}));
  c2 = hn::Set(d, std::uint64_t{place.step});
  c3 = hn::Set(d, std::uint64_t{place.source});
}

// Draws 16 bytes for each of `blocks` blocks of 16 elements. The first block has index `first` in
// the tensor. `tag` is stream_tag() of their purpose. `blocks` is a multiple of the number of
// blocks in a vector, at most 8.
template <int rounds = 10>
HWY_INLINE void random_blocks(const Place& place, std::uint32_t tag, std::uint64_t first,
                              std::size_t blocks, std::uint8_t* out) {
  const LongWords d;
  const std::size_t lanes = hn::Lanes(d);
  // Lanes 2i and 2i + 1 hold blocks i and i + lanes/2, so that the interleaving below leaves blocks
  // in order.
  const auto half = hn::ShiftRight<1>(hn::Iota(d, 0));
  const auto order = hn::OddEven(hn::Add(half, hn::Set(d, lanes / 2)), half);
  for (std::size_t b = 0; b < blocks; b += lanes) {
    LongVec c0, c1, c2, c3;
    random_counters(place, tag, first + b, order, c0, c1, c2, c3);
    PhiloxKey key = philox_key(place.seed);
    for (int round = 0; round < rounds; ++round, key = next_key(key))
      philox_round(key, c0, c1, c2, c3);
    const auto low =
        hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<32>(c1)), hn::BitCast(Words(), c0));
    const auto high =
        hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<32>(c3)), hn::BitCast(Words(), c2));
    const auto lower = hn::InterleaveLower(d, hn::BitCast(d, low), hn::BitCast(d, high));
    const auto upper = hn::InterleaveUpper(d, hn::BitCast(d, low), hn::BitCast(d, high));
    hn::StoreU(hn::BitCast(Bytes(), lower), Bytes(), out + b * kRandomBlockElements);
    hn::StoreU(hn::BitCast(Bytes(), upper), Bytes(), out + (b + lanes / 2) * kRandomBlockElements);
  }
}

#if LEEWAY_RAW_AVX512

// random_blocks() for 32 blocks, but the words of each four blocks stand together: four words 0,
// four words 1, and so on. Four vectors of counters go through the rounds side by side, because one
// alone waits for each multiplication. NVFP4 encodes 24.5 instead of 20.6 GB/s of float32 with
// this.
class QuarterDraws {
 public:
  static constexpr std::size_t kBlocks = 32;

  QuarterDraws(const Place& place, std::uint32_t tag) : place_(place), tag_(tag) {}

  template <int rounds = 10>
  HWY_INLINE void draw(std::uint64_t first, std::uint8_t* out) const {
    const LongWords d;
    LongVec c0[4], c1[4], c2[4], c3[4];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      random_counters(place_, tag_, first + 8 * i, hn::Iota(d, 0), c0[i], c1[i], c2[i], c3[i]);
    }
    PhiloxKey key = philox_key(place_.seed);
    for (int round = 0; round < rounds; ++round) {
#pragma GCC unroll 4
      for (std::size_t i = 0; i < 4; ++i) philox_round(key, c0[i], c1[i], c2[i], c3[i]);
      key = next_key(key);
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i)
      store(c0[i], c1[i], c2[i], c3[i], out + 8 * i * kRandomBlockElements);
  }

 private:
  static HWY_INLINE void store(LongVec c0, LongVec c1, LongVec c2, LongVec c3, std::uint8_t* out) {
    const __m512i lower_words =
        _mm512_setr_epi32(0, 2, 4, 6, 16, 18, 20, 22, 8, 10, 12, 14, 24, 26, 28, 30);
    const __m512i words01 = _mm512_permutex2var_epi32(c0.raw, lower_words, c1.raw);
    const __m512i words23 = _mm512_permutex2var_epi32(c2.raw, lower_words, c3.raw);
    _mm512_storeu_si512(out, _mm512_shuffle_i64x2(words01, words23, 0x44));
    _mm512_storeu_si512(out + 64, _mm512_shuffle_i64x2(words01, words23, 0xEE));
  }

  const Place& place_;
  std::uint32_t tag_;
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
