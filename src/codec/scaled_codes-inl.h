// The third step of encoding: elements times inverse scales, rounded to codes and packed. Included once for every instruction set.
#if defined(LEEWAY_CODEC_SCALED_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_SCALED_CODES_INL_H_
#undef LEEWAY_CODEC_SCALED_CODES_INL_H_
#else
#define LEEWAY_CODEC_SCALED_CODES_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "codec/minifloat-inl.h"
#include "codec/philox-inl.h"
#include "codec/scaled_vectors-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

// Elements whose random bytes are drawn together.
inline constexpr std::size_t kTile = 256;

// Puts the lanes of four vectors, which share a vector of words as its bytes 0, 2, 1 and 3, one vector after the other.
class ByteOrder {
 public:
  ByteOrder() : within_(hn::LoadDup128(Bytes(), kWithin)), across_(hn::IndicesFromVec(Words(), across())) {}
  HWY_INLINE ByteVec restore(ByteVec v) const {
    const auto gathered = hn::BitCast(Words(), hn::TableLookupBytes(v, within_));
    return hn::BitCast(Bytes(), hn::Lanes(Words()) == 4 ? gathered : hn::TableLookupLanes(gathered, across_));
  }

 private:
  alignas(16) static constexpr std::uint8_t kWithin[16] = {0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15};
  // Word l of group k comes from word k of 128-bit lane l.
  static HWY_INLINE WordVec across() {
    alignas(64) std::uint32_t from[16];
    const std::size_t lanes = hn::Lanes(Words()) / 4;
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::size_t l = 0; l < lanes; ++l) from[k * lanes + l] = static_cast<std::uint32_t>(4 * l + k);
    }
    return hn::Load(Words(), from);
  }

  ByteVec within_;
  decltype(hn::IndicesFromVec(Words(), WordVec())) across_;
};

// One value's sign and code in the lower 16 bits of its lane, in the upper byte (stochastic) or the lower one.
template <Minifloat element, bool stochastic>
HWY_INLINE WordVec signed_code(FloatVec v, const std::uint8_t* random) {
  if constexpr (stochastic) {
    const auto bytes = hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<std::uint8_t, Words>(), random));
    const auto sum = hn::Add(quanta_codes<element, 8>(v), bytes);
    return hn::Or(sum, hn::And(hn::ShiftRight<16>(bits_of(v)), word(0x8000)));
  } else {
    return hn::Or(quanta_codes<element, 0>(v), hn::And(hn::ShiftRight<24>(bits_of(v)), word(0x80)));
  }
}

// Sign (bit 7) and magnitude code of four vectors, a byte an element, in order.
template <Minifloat element, bool stochastic>
HWY_INLINE ByteVec signed_codes(const ByteOrder& order, FloatVec v0, FloatVec v1, FloatVec v2, FloatVec v3,
                                const std::uint8_t* random) {
  const Shorts d16;
  const std::size_t n = hn::Lanes(Floats());
  const auto code0 = signed_code<element, stochastic>(v0, random);
  const auto code1 = signed_code<element, stochastic>(v1, random + n);
  const auto code2 = signed_code<element, stochastic>(v2, random + 2 * n);
  const auto code3 = signed_code<element, stochastic>(v3, random + 3 * n);
  auto even = hn::OddEven(hn::BitCast(d16, hn::ShiftLeft<16>(code1)), hn::BitCast(d16, code0));
  auto odd = hn::OddEven(hn::BitCast(d16, hn::ShiftLeft<16>(code3)), hn::BitCast(d16, code2));
  if constexpr (stochastic) {
    even = hn::ShiftRight<8>(even);
  } else {
    odd = hn::ShiftLeft<8>(odd);
  }
  return order.restore(hn::OddEven(hn::BitCast(Bytes(), odd), hn::BitCast(Bytes(), even)));
}

HWY_INLINE hn::Vec<Shorts> shorts(std::uint16_t value) { return hn::Set(Shorts(), value); }

// Signed bytes to two's complement.
HWY_INLINE void store_integers(ByteVec codes, std::byte* to) {
  const hn::RebindToSigned<Bytes> d;
  const auto negative = hn::BroadcastSignBit(hn::BitCast(d, codes));
  const auto magnitude = hn::And(hn::BitCast(d, codes), hn::Set(d, 0x7F));
  hn::StoreU(hn::BitCast(Bytes(), hn::Sub(hn::Xor(magnitude, negative), negative)), Bytes(), reinterpret_cast<std::uint8_t*>(to));
}

// Pairs of bytes S0000ccc to a byte, the first in the low nibble.
HWY_INLINE void store_nibbles(ByteVec codes, std::byte* to) {
  const auto pair = hn::BitCast(Shorts(), codes);
  const auto low = hn::And(pair, shorts(0x0007));
  const auto middle = hn::And(hn::ShiftRight<4>(pair), shorts(0x0078));  // the first's sign, the second's magnitude
  const auto high = hn::And(hn::ShiftRight<8>(pair), shorts(0x0080));
  const auto packed = hn::BitCast(hn::RebindToSigned<Shorts>(), hn::Or(hn::Or(low, middle), high));
  const hn::Rebind<std::uint8_t, Shorts> d8;
  hn::StoreU(hn::DemoteTo(d8, packed), d8, reinterpret_cast<std::uint8_t*>(to));
}

// Fours of bytes S00ccccc to three bytes, the first in the lowest bits.
HWY_INLINE void store_sixes(ByteVec codes, std::byte* to) {
  alignas(16) static constexpr std::uint8_t kThreeOfFour[16] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};
  const auto four = hn::BitCast(Words(), codes);
  const auto six = hn::Or(hn::And(four, word(0x1F1F1F1F)), hn::And(hn::ShiftRight<2>(four), word(0x20202020)));
  const auto lower = hn::Or(hn::And(six, word(0x3F)), hn::And(hn::ShiftRight<2>(six), word(0xFC0)));
  const auto upper = hn::Or(hn::And(hn::ShiftRight<4>(six), word(0x3F000)), hn::And(hn::ShiftRight<6>(six), word(0xFC0000)));
  const auto packed = hn::TableLookupBytes(hn::BitCast(Bytes(), hn::Or(lower, upper)), hn::LoadDup128(Bytes(), kThreeOfFour));
  alignas(64) std::uint8_t buffer[64];
  hn::Store(packed, Bytes(), buffer);
  for (std::size_t part = 0; part < hn::Lanes(Bytes()) / 16; ++part) std::memcpy(to + 12 * part, buffer + 16 * part, 12);
}

template <Minifloat element>
HWY_INLINE void store_codes(ByteVec codes, std::byte* to) {
  if constexpr (element == kInteger8) {
    store_integers(codes, to);
  } else if constexpr (element.code_bits == 8) {
    hn::StoreU(codes, Bytes(), reinterpret_cast<std::uint8_t*>(to));
  } else if constexpr (element.code_bits == 6) {
    store_sixes(codes, to);
  } else if constexpr (element == kE3M0) {  // LUQ has one zero
    store_nibbles(hn::IfThenZeroElse(hn::Eq(codes, hn::Set(Bytes(), 0x80)), codes), to);
  } else {
    store_nibbles(codes, to);
  }
}

// What one plane of codes is made from. Block b has elements [b << block_shift, (b + 1) << block_shift) and inverses[b], readable also for
// the blocks that fill up the last 16.
struct CodePlane {
  std::span<const float> in;
  const float* inverses;
  int block_shift;
  const Place* place;
  std::uint32_t draw;
};

// Codes of `count` elements at `first`, a multiple of four vectors.
template <Minifloat element, bool stochastic>
HWY_INLINE void put_vectors(const CodePlane& plane, const ByteOrder& order, const float* in, std::size_t first, std::size_t count,
                            std::byte* out) {
  const Floats d;
  const std::size_t n = hn::Lanes(d);
  alignas(64) std::uint8_t random[kTile];
  if constexpr (stochastic) {
    random_blocks(*plane.place, plane.draw, (plane.place->first_element + first) / kRandomBlockElements, kTile / kRandomBlockElements,
                  random);
  }
  const auto scaled = [&](std::size_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, in + i), hn::Set(d, plane.inverses[(first + i) >> plane.block_shift]));
  };
  for (std::size_t i = 0; i < count; i += 4 * n) {
    const auto codes = signed_codes<element, stochastic>(order, scaled(i), scaled(i + n), scaled(i + 2 * n), scaled(i + 3 * n), random + i);
    store_codes<element>(codes, out + i * element.code_bits / 8);
  }
}

template <Minifloat element, bool stochastic>
void put_plane(const CodePlane& plane, std::byte* out) {
  const ByteOrder order;
  const std::size_t size = plane.in.size();
  std::size_t i = 0;
  for (; i + kTile <= size; i += kTile) {
    put_vectors<element, stochastic>(plane, order, plane.in.data() + i, i, kTile, out + i * element.code_bits / 8);
  }
  if (i == size) return;
  alignas(64) float padded[kTile] = {};
  alignas(64) std::byte codes[kTile];
  std::copy(plane.in.begin() + static_cast<std::ptrdiff_t>(i), plane.in.end(), padded);
  const std::size_t step = 4 * hn::Lanes(Floats());
  put_vectors<element, stochastic>(plane, order, padded, i, (size - i + step - 1) / step * step, codes);
  std::memcpy(out + i * element.code_bits / 8, codes, ((size - i) * element.code_bits + 7) / 8);
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
