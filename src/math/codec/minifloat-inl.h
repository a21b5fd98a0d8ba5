// Rounding to small floats, a vector at a time; the same codes as minifloat.h. Included once for
// every instruction set.
#if defined(LEEWAY_CODEC_MINIFLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_MINIFLOAT_INL_H_
#undef LEEWAY_CODEC_MINIFLOAT_INL_H_
#else
#define LEEWAY_CODEC_MINIFLOAT_INL_H_
#endif

#include "codec/minifloat.h"
#include "codec/scaled_vectors-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

template <Minifloat element>
HWY_INLINE FloatVec clamped_magnitude(FloatVec v) {
#if LEEWAY_RAW_AVX512
  constexpr int kSmallerMagnitudeWithoutSign = 0b1010;
  return FloatVec{
      _mm512_range_ps(v.raw, _mm512_set1_ps(largest(element)), kSmallerMagnitudeWithoutSign)};
#else
  return hn::Min(hn::Abs(v), hn::Set(Floats(), largest(element)));
#endif
}

// The lower 16 bits of each lane get the value's magnitude code, followed by `fraction_bits` bits
// of the fraction beyond it. The upper 16 bits are arbitrary, and so are lanes of NaN. Saturates.
//
// The processor rounds. A suitable power of two is added, so that the sum's last bit is worth one
// quantum of the value's binade, or 2^-fraction_bits of a quantum. The sum's lowest bits are then
// the number of quanta, rounded to nearest, ties to even. Each binade above the smallest adds
// 2^mantissa_bits to the code; the constant that this needs is put into the power's mantissa,
// modulo 2^16. The constant is even, so ties stay ties.
template <Minifloat element, int fraction_bits>
HWY_INLINE WordVec quanta_codes(FloatVec v) {
  constexpr int kMantissaBits = element.mantissa_bits + fraction_bits;
  constexpr int kShift = 23 - kMantissaBits;
  constexpr auto kFirstBinade = static_cast<std::uint32_t>(127 + element.exponent_min);
  constexpr std::uint32_t kOffset = (0u - (kFirstBinade << kMantissaBits)) & 0xFFFF;
  static_assert(kOffset % 2 == 0);
  const auto magnitude = clamped_magnitude<element>(v);
  if constexpr (element.magnitude_max >> element.mantissa_bits ==
                0) {  // an integer: there is one quantum
    return bits_of(hn::Add(magnitude, float_of(word((kFirstBinade + kShift) << 23))));
  } else if constexpr (element == kE2M1 && fraction_bits == 0) {
    // The code is the least of three straight lines in the value, each flatter than the one before.
    // Rounding each of them takes one instruction less than the general way below.
    const Floats d;
    const auto below_two = hn::MulAdd(magnitude, hn::Set(d, 2.0f), hn::Set(d, 0x1p23f));
    const auto below_four = hn::Add(magnitude, hn::Set(d, 0x1p23f + 2.0f));
    const auto above = hn::MulAdd(magnitude, hn::Set(d, 0.5f), hn::Set(d, 0x1p23f + 4.0f));
    return bits_of(hn::Min(hn::Min(below_two, below_four), above));
  } else {
    const auto smallest = float_of(word(kFirstBinade << 23));
    const auto exponent = hn::And(bits_of(hn::Max(magnitude, smallest)), word(0x7F800000));
    const auto power = hn::Add(exponent, word((kShift << 23) + kOffset));
    return hn::Add(bits_of(hn::Add(magnitude, float_of(power))), hn::ShiftRight<kShift>(exponent));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
