// Converts rounded elements to the bytes of codes. Four vectors with one element a lane become one
// vector with one element a byte. Codes of 4 and 6 bits are then packed. Included once for every
// instruction set.
//
// The packers here and in code_bytes_avx512-inl.h have the same two steps, but different orders of
// bytes between the steps:
//   codes<element, stochastic>(v0, v1, v2, v3, random)
//       returns the codes of four vectors of scaled elements, a byte each. `random` is what draw()
//       gave for these elements.
//   store<element>(a, b, to)
//       packs two results of codes() and writes them in the order of the elements.
#if defined(LEEWAY_CODEC_CODE_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_CODE_BYTES_INL_H_
#undef LEEWAY_CODEC_CODE_BYTES_INL_H_
#else
#define LEEWAY_CODEC_CODE_BYTES_INL_H_
#endif

#include <cstring>

#include "codec/minifloat-inl.h"
#include "codec/philox-inl.h"
#include "codec/scaled_vectors-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

// Converts magnitude codes to two's complement; `signs` has the sign in bit 7.
HWY_INLINE ByteVec twos_complement(ByteVec magnitudes, ByteVec signs) {
  const hn::RebindToSigned<Bytes> d;
  const auto negative = hn::BroadcastSignBit(hn::BitCast(d, signs));
  return hn::BitCast(Bytes(), hn::Sub(hn::Xor(hn::BitCast(d, magnitudes), negative), negative));
}

// Adds signs to codes. Both arguments have a byte an element; only bit 7 of `signs` is used.
template <Minifloat element>
HWY_INLINE ByteVec with_signs(ByteVec magnitudes, ByteVec signs) {
  if constexpr (element == kInteger8) return twos_complement(magnitudes, signs);
  constexpr std::uint8_t kSign = 1 << (element.code_bits - 1);
  // The 16-bit shift also moves bits of the neighbouring byte in, but only above the sign's place.
  const auto shifted =
      hn::BitCast(Bytes(), hn::ShiftRight<8 - element.code_bits>(hn::BitCast(Shorts(), signs)));
  const auto sign = hn::And(element.code_bits == 8 ? signs : shifted, hn::Set(Bytes(), kSign));
  const auto code = hn::Or(sign, magnitudes);
  if constexpr (element != kE3M0) return code;
  return hn::IfThenZeroElse(hn::Eq(code, hn::Set(Bytes(), kSign)), code);  // LUQ has one zero
}

class Packer {
 public:
  Packer()
      : within_(hn::LoadDup128(Bytes(), kWithin)), across_(hn::IndicesFromVec(Words(), across())) {}

  static void draw(const Place& place, std::uint32_t draw, std::uint64_t first, std::size_t blocks,
                   std::uint8_t* out) {
    random_blocks(place, stream_tag(kRoundingStream, draw), first, blocks, out);
  }

  template <Minifloat element, bool stochastic>
  HWY_INLINE ByteVec codes(FloatVec v0, FloatVec v1, FloatVec v2, FloatVec v3,
                           const std::uint8_t* random) const {
    const std::size_t n = hn::Lanes(Floats());
    const auto magnitudes = bytes_of<stochastic>(rounded<element, stochastic>(v0, random),
                                                 rounded<element, stochastic>(v1, random + n),
                                                 rounded<element, stochastic>(v2, random + 2 * n),
                                                 rounded<element, stochastic>(v3, random + 3 * n));
    const auto signs =
        bytes_of<true>(upper_half(v0), upper_half(v1), upper_half(v2), upper_half(v3));
    return restored(with_signs<element>(magnitudes, signs));
  }

  template <Minifloat element>
  HWY_INLINE void store(ByteVec a, ByteVec b, std::byte* to) const {
    auto* bytes = reinterpret_cast<std::uint8_t*>(to);
    const std::size_t second = hn::Lanes(Bytes()) * element.code_bits / 8;
    if constexpr (element.code_bits == 8) {
      hn::StoreU(a, Bytes(), bytes);
      hn::StoreU(b, Bytes(), bytes + second);
    } else if constexpr (element.code_bits == 6) {
      store_sixes(a, bytes);
      store_sixes(b, bytes + second);
    } else {
      store_nibbles(a, bytes);
      store_nibbles(b, bytes + second);
    }
  }

 private:
  // The code is in the upper byte (stochastic) or the lower byte of each lane's lower 16 bits.
  template <Minifloat element, bool stochastic>
  static HWY_INLINE WordVec rounded(FloatVec v, const std::uint8_t* random) {
    if constexpr (!stochastic) return quanta_codes<element, 0>(v);
    return hn::Add(quanta_codes<element, 8>(v),
                   hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<std::uint8_t, Words>(), random)));
  }
  static HWY_INLINE WordVec upper_half(FloatVec v) { return hn::ShiftRight<16>(bits_of(v)); }

  // Takes the upper or lower byte of the low 16 bits of each lane. Bytes of v0, v1, v2 and v3
  // become bytes 0, 2, 1 and 3 of a lane.
  template <bool upper>
  static HWY_INLINE ByteVec bytes_of(WordVec v0, WordVec v1, WordVec v2, WordVec v3) {
    const Shorts d;
    const auto v01 = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<16>(v1)), hn::BitCast(d, v0));
    const auto v23 = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<16>(v3)), hn::BitCast(d, v2));
    const auto even = upper ? hn::ShiftRight<8>(v01) : v01;
    const auto odd = upper ? v23 : hn::ShiftLeft<8>(v23);
    return hn::OddEven(hn::BitCast(Bytes(), odd), hn::BitCast(Bytes(), even));
  }

  HWY_INLINE ByteVec restored(ByteVec v) const {
    const auto gathered = hn::BitCast(Words(), hn::TableLookupBytes(v, within_));
    return hn::BitCast(
        Bytes(), hn::Lanes(Words()) == 4 ? gathered : hn::TableLookupLanes(gathered, across_));
  }
  alignas(16) static constexpr std::uint8_t kWithin[16] = {0, 4, 8, 12, 2, 6, 10, 14,
                                                           1, 5, 9, 13, 3, 7, 11, 15};
  // Word order that undoes the packing: word l of vector k is word k of 128-bit lane l.
  static HWY_INLINE WordVec across() {
    alignas(64) std::uint32_t from[16];
    const std::size_t lanes = hn::Lanes(Words()) / 4;
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::size_t l = 0; l < lanes; ++l)
        from[k * lanes + l] = static_cast<std::uint32_t>(4 * l + k);
    }
    return hn::Load(Words(), from);
  }

  // Packs pairs of codes into bytes, the first in the low nibble.
  static HWY_INLINE void store_nibbles(ByteVec codes, std::uint8_t* to) {
    const auto pair = hn::BitCast(Shorts(), codes);
    const auto packed = hn::And(hn::Or(pair, hn::ShiftRight<4>(pair)), hn::Set(Shorts(), 0xFF));
    const hn::Rebind<std::uint8_t, Shorts> d8;
    hn::StoreU(hn::DemoteTo(d8, hn::BitCast(hn::RebindToSigned<Shorts>(), packed)), d8, to);
  }

  // Packs each four codes into three bytes, the first in the lowest bits.
  static HWY_INLINE void store_sixes(ByteVec codes, std::uint8_t* to) {
    alignas(16) static constexpr std::uint8_t kThreeOfFour[16] = {
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};
    const auto four = hn::BitCast(Words(), codes);
    const auto lower =
        hn::Or(hn::And(four, word(0x3F)), hn::And(hn::ShiftRight<2>(four), word(0xFC0)));
    const auto upper = hn::Or(hn::And(hn::ShiftRight<4>(four), word(0x3F000)),
                              hn::And(hn::ShiftRight<6>(four), word(0xFC0000)));
    const auto packed = hn::TableLookupBytes(hn::BitCast(Bytes(), hn::Or(lower, upper)),
                                             hn::LoadDup128(Bytes(), kThreeOfFour));
    alignas(64) std::uint8_t buffer[64];
    hn::Store(packed, Bytes(), buffer);
    for (std::size_t part = 0; part < hn::Lanes(Bytes()) / 16; ++part)
      std::memcpy(to + 12 * part, buffer + 16 * part, 12);
  }

  ByteVec within_;
  decltype(hn::IndicesFromVec(Words(), WordVec())) across_;
};

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
