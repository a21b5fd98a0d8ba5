// Decodes codes to their exact float values. Included once for every instruction set.
#if defined(LEEWAY_CODEC_CODE_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_CODE_VALUES_INL_H_
#undef LEEWAY_CODEC_CODE_VALUES_INL_H_
#else
#define LEEWAY_CODEC_CODE_VALUES_INL_H_
#endif

#include <array>
#include <bit>
#include <cstring>

#include "codec/minifloat.h"
#include "codec/scaled_vectors-inl.h"
#include "codec/sixteen_bits-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

using ByteLanes = hn::Rebind<std::uint8_t, Floats>;  // a byte for each float

// Codes of 8 bits, or of 6 bits in the lower bits of bytes.
//
// With half-precision instructions, a code is moved to its place in a half. The half differs from
// the value by the ratio of the biases, a power of two. Subnormal codes become subnormal halves,
// which those instructions convert at full speed; many processors are slow on float32 subnormals.
template <Minifloat element>
struct ByteCodes {
  static constexpr std::size_t kStep = 32;
  static constexpr bool kFiniteOnly = true;
  static constexpr int kMagnitudeBits = element.code_bits - 1;
  static constexpr std::uint16_t kMagnitude = (1 << kMagnitudeBits) - 1;

#if LEEWAY_HARDWARE_HALF
  static HWY_INLINE hn::Vec<Shorts> halves(hn::Vec<Shorts> codes) {
    const Shorts d;
    const hn::RebindToSigned<Shorts> ds;
    if constexpr (element.code_bits == 8) {
      const auto top = hn::ShiftLeft<8>(codes);
      if constexpr (element.mantissa_bits == 2) return top;
      // The arithmetic shift copies the sign into the exponent's highest bit, which must be 0 and
      // is cleared.
      return hn::And(hn::BitCast(d, hn::ShiftRight<1>(hn::BitCast(ds, top))), hn::Set(d, 0xBFFF));
    } else {
      const auto magnitude =
          hn::ShiftLeft<10 - element.mantissa_bits>(hn::And(codes, hn::Set(d, kMagnitude)));
      return hn::Or(magnitude,
                    hn::And(hn::ShiftLeft<15 - kMagnitudeBits>(codes), hn::Set(d, 0x8000)));
    }
  }
  template <class Use>
  static HWY_INLINE void decode(const std::byte* codes, Use use) {
    constexpr int kBias = 1 - element.exponent_min;
    const hn::Rebind<std::uint8_t, Shorts> d8;
    const hn::Half<Shorts> d16;
    const hn::Rebind<hwy::float16_t, Floats> half_floats;
    const auto ratio =
        hn::Set(Floats(), std::bit_cast<float>(static_cast<std::uint32_t>(127 + 15 - kBias) << 23));
    for (std::size_t i = 0; i < kStep; i += 2 * hn::Lanes(Floats())) {
      const auto both = halves(
          hn::PromoteTo(Shorts(), hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(codes) + i)));
      const auto low = hn::PromoteTo(Floats(), hn::BitCast(half_floats, hn::LowerHalf(d16, both)));
      const auto high = hn::PromoteTo(Floats(), hn::BitCast(half_floats, hn::UpperHalf(d16, both)));
      use(i, kBias == 15 ? low : hn::Mul(low, ratio));
      use(i + hn::Lanes(Floats()), kBias == 15 ? high : hn::Mul(high, ratio));
    }
  }
#else
  template <class Use>
  static HWY_INLINE void decode(const std::byte* codes, Use use) {
    for (std::size_t i = 0; i < kStep; i += hn::Lanes(Floats())) {
      const auto bytes = hn::LoadU(ByteLanes(), reinterpret_cast<const std::uint8_t*>(codes) + i);
      use(i, value(hn::PromoteTo(Words(), bytes)));
    }
  }
  // A subnormal is built one binade up, with a leading one; the leading one is then subtracted.
  static HWY_INLINE FloatVec value(WordVec code) {
    constexpr auto kFirstBinade = static_cast<std::uint32_t>(127 + element.exponent_min);
    const auto magnitude = hn::And(code, word(kMagnitude));
    const auto shifted = hn::ShiftLeft<23 - element.mantissa_bits>(magnitude);
    const auto normal = float_of(hn::Add(shifted, word((kFirstBinade - 1) << 23)));
    const auto one_up = float_of(hn::Add(shifted, word(kFirstBinade << 23)));
    const auto subnormal = hn::Sub(one_up, float_of(word(kFirstBinade << 23)));
    const auto small =
        hn::RebindMask(Floats(), hn::Lt(magnitude, word(1 << element.mantissa_bits)));
    const auto sign = hn::ShiftLeft<31 - kMagnitudeBits>(hn::And(code, word(1 << kMagnitudeBits)));
    return float_of(hn::Or(bits_of(hn::IfThenElse(small, subnormal, normal)), sign));
  }
#endif
};

// Codes of int8.
template <>
struct ByteCodes<kInteger8> {
  static constexpr std::size_t kStep = 32;
  static constexpr bool kFiniteOnly = false;
  template <class Use>
  static HWY_INLINE void decode(const std::byte* codes, Use use) {
    const hn::Rebind<std::int8_t, Floats> d8;
    for (std::size_t i = 0; i < kStep; i += hn::Lanes(Floats())) {
      const auto bytes = hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(codes) + i);
      use(i, hn::ConvertTo(Floats(), hn::PromoteTo(Integers(), bytes)));
    }
  }
};

// The value of each 4-bit code; code 8 is -0, which LUQ never sends and reads as 0.
template <Minifloat element>
constexpr std::array<float, 16> nibble_values() {
  std::array<float, 16> values{};
  for (int code = 0; code < 16; ++code) {
    const float magnitude = magnitude_value(element, code & 7);
    values[static_cast<std::size_t>(code)] = code < 8 ? magnitude : -magnitude;
  }
  if (element == kE3M0) values[8] = 0.0f;
  return values;
}

// Codes of 4 bits, two in a byte.
#if LEEWAY_RAW_VBMI

template <Minifloat element>
struct NibbleCodes {
  static constexpr std::size_t kStep = 64;
  static constexpr bool kFiniteOnly = false;
  alignas(64) static constexpr std::array<float, 16> kValues = nibble_values<element>();

  // A vector gets 32 bytes of codes, and behind them the same bytes shifted by 4 bits. From it a
  // byte permutation puts each code at the bottom of a lane. The look-up uses only the lowest 4
  // bits of a lane.
  template <class Use>
  static HWY_INLINE void decode(const std::byte* codes, Use use) {
    alignas(64) static constexpr std::array<std::array<std::uint32_t, 16>, 4> kPlaces = places();
    const __m512i shifts = _mm512_setr_epi64(0, 0, 0, 0, 4, 4, 4, 4);
    const __m512i twice =
        _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
    const __m512i nibbles = _mm512_srlv_epi64(twice, shifts);
    const __m512 values = _mm512_load_ps(kValues.data());
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      const __m512i indices =
          _mm512_permutexvar_epi8(_mm512_load_si512(kPlaces[k].data()), nibbles);
      use(16 * k, FloatVec{_mm512_permutexvar_ps(indices, values)});
    }
  }

  // Returns, for lane j of result k, the place in decode()'s `nibbles` of the byte that has the
  // lane's code in its lowest 4 bits. A code that is the second of its byte is in the upper half.
  static constexpr std::array<std::array<std::uint32_t, 16>, 4> places() {
    std::array<std::array<std::uint32_t, 16>, 4> places{};
    for (std::uint32_t code = 0; code < 64; ++code)
      places[code / 16][code % 16] = code / 2 + code % 2 * 32;
    return places;
  }
};

#elif LEEWAY_RAW_AVX512

template <Minifloat element>
struct NibbleCodes {
  static constexpr std::size_t kStep = 128;
  static constexpr bool kFiniteOnly = false;
  alignas(64) static constexpr std::array<float, 16> kValues = nibble_values<element>();

  // A word has 8 codes. Each result takes two of the 16 words, one for its lower and one for its
  // upper 8 lanes. It moves a nibble to the bottom of each lane, and looks the nibble up. The
  // look-up uses only the lane's lowest 4 bits.
  template <class Use>
  static HWY_INLINE void decode(const std::byte* codes, Use use) {
    alignas(64) static constexpr std::uint32_t kShifts[16] = {0, 4, 8, 12, 16, 20, 24, 28,
                                                              0, 4, 8, 12, 16, 20, 24, 28};
    alignas(64) static constexpr std::uint32_t kPair[16] = {0, 0, 0, 0, 0, 0, 0, 0,
                                                            1, 1, 1, 1, 1, 1, 1, 1};
    const __m512i words = _mm512_loadu_si512(codes);
    const __m512i shifts = _mm512_load_si512(kShifts);
    const __m512i first = _mm512_load_si512(kPair);
    const __m512 values = _mm512_load_ps(kValues.data());
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      const __m512i pair =
          _mm512_permutexvar_epi32(_mm512_add_epi32(first, _mm512_set1_epi32(2 * k)), words);
      const __m512 value = _mm512_permutexvar_ps(_mm512_srlv_epi32(pair, shifts), values);
      use(static_cast<std::size_t>(16 * k), FloatVec{value});
    }
  }
};

#else

// The low 16 bits of the values' floats are 0, so two byte look-ups give a value.
template <Minifloat element>
struct NibbleCodes {
  static constexpr std::size_t kStep = 32;
  static constexpr bool kFiniteOnly = false;
  using Table = std::array<std::uint8_t, 16>;

  static constexpr Table value_bytes(int shift) {
    Table table{};
    const auto values = nibble_values<element>();
    for (std::size_t code = 0; code < 16; ++code) {
      table[code] = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(values[code]) >> shift);
    }
    return table;
  }
  alignas(16) static constexpr Table kThird = value_bytes(16);
  alignas(16) static constexpr Table kFourth = value_bytes(24);

  template <class Use>
  static HWY_INLINE void decode(const std::byte* codes, Use use) {
    const hn::CappedTag<std::uint8_t, 16> d;
    const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(codes));
    const auto even = hn::And(bytes, hn::Set(d, 0x0F));
    const auto odd = hn::ShiftRight<4>(bytes);
    alignas(16) std::uint16_t upper[kStep];
    look_up(hn::InterleaveLower(d, even, odd), upper);
    look_up(hn::InterleaveUpper(d, even, odd), upper + 16);
    const hn::Rebind<std::uint16_t, Floats> d16;
    for (std::size_t i = 0; i < kStep; i += hn::Lanes(Floats())) {
      use(i, float_of(hn::ShiftLeft<16>(hn::PromoteTo(Words(), hn::LoadU(d16, upper + i)))));
    }
  }

  static HWY_INLINE void look_up(hn::Vec<hn::CappedTag<std::uint8_t, 16>> codes,
                                 std::uint16_t* upper) {
    const hn::CappedTag<std::uint8_t, 16> d;
    const hn::CappedTag<std::uint16_t, 8> d16;
    const auto third = hn::TableLookupBytes(hn::Load(d, kThird.data()), codes);
    const auto fourth = hn::TableLookupBytes(hn::Load(d, kFourth.data()), codes);
    hn::Store(hn::BitCast(d16, hn::InterleaveLower(d, third, fourth)), d16, upper);
    hn::Store(hn::BitCast(d16, hn::InterleaveUpper(d, third, fourth)), d16, upper + 8);
  }
};

#endif

// Spreads 16 codes of 6 bits, in the 12 lower bytes, to a byte each.
HWY_INLINE hn::Vec<hn::CappedTag<std::uint8_t, 16>> spread_sixes(
    hn::Vec<hn::CappedTag<std::uint8_t, 16>> packed) {
  alignas(16) static constexpr std::uint8_t kFourOfThree[16] = {0, 1, 2, 0x80, 3, 4,  5,  0x80,
                                                                6, 7, 8, 0x80, 9, 10, 11, 0x80};
  const hn::CappedTag<std::uint8_t, 16> d8;
  const hn::CappedTag<std::uint32_t, 4> d32;
  const auto four = hn::BitCast(d32, hn::TableLookupBytes(packed, hn::Load(d8, kFourOfThree)));
  const auto first = hn::Or(hn::And(four, hn::Set(d32, 0x3F)),
                            hn::And(hn::ShiftLeft<2>(four), hn::Set(d32, 0x3F00)));
  const auto last = hn::Or(hn::And(hn::ShiftLeft<4>(four), hn::Set(d32, 0x3F0000)),
                           hn::And(hn::ShiftLeft<6>(four), hn::Set(d32, 0x3F000000)));
  return hn::BitCast(d8, hn::Or(first, last));
}

// Codes of 6 bits, four in three bytes.
template <Minifloat element>
struct SixBitCodes {
  static constexpr std::size_t kStep = 32;
  static constexpr bool kFiniteOnly = false;
  template <class Use>
  static HWY_INLINE void decode(const std::byte* codes, Use use) {
    const hn::CappedTag<std::uint8_t, 16> d8;
    const auto* packed = reinterpret_cast<const std::uint8_t*>(codes);
    alignas(16) static constexpr std::uint8_t kUpper[16] = {4,  5,  6,  7,  8,    9,    10,   11,
                                                            12, 13, 14, 15, 0x80, 0x80, 0x80, 0x80};
    const auto second =
        hn::TableLookupBytes(hn::LoadU(d8, packed + 8), hn::Load(d8, kUpper));  // bytes 12 .. 23
    alignas(16) std::byte bytes[kStep];
    hn::Store(spread_sixes(hn::LoadU(d8, packed)), d8, reinterpret_cast<std::uint8_t*>(bytes));
    hn::Store(spread_sixes(second), d8, reinterpret_cast<std::uint8_t*>(bytes) + 16);
    ByteCodes<element>::decode(bytes, use);
  }
};

#if LEEWAY_RAW_VBMI

// Byte order in which each 64-bit lane gets four codes (three bytes) of each of two vectors. Codes
// 4q .. 4q + 3 of vector k begin at byte 12 k + 3 q.
constexpr std::array<std::uint8_t, 64> six_bit_order() {
  std::array<std::uint8_t, 64> from{};
  for (std::size_t lane = 0; lane < 8; ++lane) {
    const std::size_t quarter = lane / 2;
    const std::size_t vector = lane % 2 * 2;
    for (std::size_t i = 0; i < 3; ++i) {
      from[8 * lane + i] = static_cast<std::uint8_t>(12 * vector + 3 * quarter + i);
      from[8 * lane + 3 + i] = static_cast<std::uint8_t>(12 * (vector + 1) + 3 * quarter + i);
    }
  }
  return from;
}

// Decodes codes of 6 and 8 bits by looking up the two upper bytes of the float; its two lower bytes
// are 0. This is 1.7 times as fast as conversion from half precision, and codes of NaN and infinity
// need no special case.
//
// Bytes stand by quarters: quarter q of 16 has the elements 4q .. 4q + 3 of the first of four
// vectors, then those of the second, third and fourth, so that interleaving within quarters leaves
// whole vectors in order.
template <Minifloat element>
struct TableCodes {
  static constexpr std::size_t kStep = 64;
  static constexpr bool kFiniteOnly = false;
  static constexpr std::size_t kCodes =
      std::size_t{1} << (element.code_bits == 8 ? 7 : 6);  // codes of 8 bits without sign
  using Table = std::array<std::uint8_t, kCodes>;

  static constexpr Table value_bytes(int shift) {
    Table table{};
    for (std::size_t code = 0; code < kCodes; ++code) {
      const float value = leeway::codec::decode(element, static_cast<int>(code));
      table[code] = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(value) >> shift);
    }
    return table;
  }
  alignas(64) static constexpr Table kThird = value_bytes(16);
  alignas(64) static constexpr Table kFourth = value_bytes(24);

  template <class Use>
  static HWY_INLINE void decode(const std::byte* codes, Use use) {
    const __m512i quarters = by_quarters(codes);
    __m512i fourth = looked_up(kFourth, quarters);
    if constexpr (element.code_bits == 8) {
      fourth = _mm512_or_si512(
          fourth, _mm512_and_si512(quarters, _mm512_set1_epi8(static_cast<char>(0x80))));
    }
    const __m512i third = looked_up(kThird, quarters);
    const __m512i low = _mm512_unpacklo_epi8(third, fourth);
    const __m512i high = _mm512_unpackhi_epi8(third, fourth);
    const __m512i zero = _mm512_setzero_si512();
    use(0, FloatVec{_mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, low))});
    use(16, FloatVec{_mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, low))});
    use(32, FloatVec{_mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, high))});
    use(48, FloatVec{_mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, high))});
  }

  static HWY_INLINE __m512i looked_up(const Table& table, __m512i codes) {
    if constexpr (kCodes == 64)
      return _mm512_permutexvar_epi8(codes, _mm512_load_si512(table.data()));
    return _mm512_permutex2var_epi8(_mm512_load_si512(table.data()), codes,
                                    _mm512_load_si512(table.data() + 64));
  }

  // Returns a code in each byte, by quarters. The look-ups use only the lowest 6 or 7 bits.
  static HWY_INLINE __m512i by_quarters(const std::byte* codes) {
    if constexpr (element.code_bits == 8) {
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      return _mm512_permutexvar_epi32(order, _mm512_loadu_si512(codes));
    } else {
      alignas(64) static constexpr std::array<std::uint8_t, 64> kOrder = six_bit_order();
      const __m512i packed = _mm512_maskz_loadu_epi32(0x0FFF, codes);
      const __m512i eights = _mm512_permutexvar_epi8(_mm512_load_si512(kOrder.data()), packed);
      return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2A241E18120C0600),
                                          eights);  // bits 0, 6, 12, ... 42
    }
  }
};
#endif

template <Minifloat element>
constexpr auto decoder_of() {
  if constexpr (element.code_bits == 4) {
    return NibbleCodes<element>();
#if LEEWAY_RAW_VBMI
  } else if constexpr (element != kInteger8) {
    return TableCodes<element>();
#endif
  } else if constexpr (element.code_bits == 6) {
    return SixBitCodes<element>();
  } else {
    return ByteCodes<element>();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
