// The second step of encoding. It turns blocks' largest magnitudes into stored scale bytes and the
// inverses by which elements are multiplied. The rules are those of block_scale.h, for a vector of
// blocks at a time. Included once for every instruction set.
#if defined(LEEWAY_CODEC_BLOCK_SCALES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_BLOCK_SCALES_INL_H_
#undef LEEWAY_CODEC_BLOCK_SCALES_INL_H_
#else
#define LEEWAY_CODEC_BLOCK_SCALES_INL_H_
#endif

#include <array>
#include <cstring>

#include "codec/block_scale.h"
#include "codec/minifloat-inl.h"
#include "codec/scaled_vectors-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

#if LEEWAY_RAW_AVX512
// Returns inverses of E4M3's subnormal values (codes 0 .. 7), then of the significands 8/8 .. 15/8
// at one exponent below the smallest normal. They are rounded down if `down` is set, else to
// nearest.
template <bool down>
constexpr std::array<float, 16> e4m3_inverse_table() {
  std::array<float, 16> table{};
  for (int i = 1; i < 16; ++i) {
    const float inverse =
        down ? inverse_below(static_cast<float>(i)) : 1.0f / static_cast<float>(i);
    table[static_cast<std::size_t>(i)] = inverse * (i < 8 ? 512.0f : 1024.0f);
  }
  return table;
}
// Returns residuals 1 - inverse * value for the inverses rounded down. The exponents of inverse and
// value cancel, so one table serves every exponent.
constexpr std::array<float, 16> e4m3_residual_table() {
  std::array<float, 16> table{};
  for (int i = 1; i < 16; ++i) {
    const auto value = static_cast<float>(i);
    table[static_cast<std::size_t>(i)] = inverse_residual(inverse_below(value), value);
  }
  return table;
}
// Index of a code in the two tables above.
HWY_INLINE __m512i e4m3_significands(WordVec code) {
  const __m512i eight = _mm512_set1_epi32(8);
  return _mm512_mask_or_epi32(code.raw, _mm512_cmpge_epu32_mask(code.raw, eight), eight,
                              _mm512_and_epi32(code.raw, _mm512_set1_epi32(7)));
}
#endif

// Values of the finite E4M3 codes 0 .. 0x7E.
HWY_INLINE FloatVec e4m3_values(WordVec code) {
  const auto normal = float_of(hn::Add(hn::ShiftLeft<20>(code), word(120u << 23)));
  const auto subnormal =
      hn::Mul(hn::ConvertTo(Floats(), hn::BitCast(Integers(), code)), hn::Set(Floats(), 0x1p-9f));
  return hn::IfThenElse(hn::RebindMask(Floats(), hn::Lt(code, word(8))), subnormal, normal);
}

HWY_INLINE WordVec e4m3_nearest(FloatVec magnitude) {
  return hn::And(quanta_codes<kE4M3, 0>(magnitude), word(0x7F));
}

// Does what e4m3_scale_code() does, for a vector of blocks.
template <bool round_up>
HWY_INLINE WordVec e4m3_scale_codes(FloatVec amax) {
  const auto code = e4m3_nearest(hn::Mul(amax, hn::Set(Floats(), kFp4Sixth)));
  if (!round_up) return code;
  const auto below = hn::Lt(hn::Mul(hn::Set(Floats(), kFp4Largest), e4m3_values(code)), amax);
  const auto step = hn::IfThenElseZero(hn::RebindMask(Words(), below), word(1));
  return hn::Min(hn::Add(code, step), word(static_cast<std::uint32_t>(kE4M3.magnitude_max)));
}

// 1 - inverses * values. Exact only if the target has fused multiply-add.
HWY_INLINE FloatVec residuals(FloatVec inverses, FloatVec values) {
  return hn::NegMulAdd(inverses, values, hn::Set(Floats(), 1.0f));
}

// 1 / e4m3_values(code), rounded down or to nearest; 0 for code 0.
template <bool down>
HWY_INLINE FloatVec e4m3_inverses(WordVec code) {
#if LEEWAY_RAW_AVX512
  // Looks up the significand's inverse and subtracts the exponent: dividing 16 lanes would take as
  // long as everything else in a scale.
  alignas(64) static constexpr std::array<float, 16> kInverses = e4m3_inverse_table<down>();
  const __m512i exponent = _mm512_slli_epi32(_mm512_srli_epi32(code.raw, 3), 23);
  const __m512i inverse = _mm512_castps_si512(
      _mm512_permutexvar_ps(e4m3_significands(code), _mm512_load_ps(kInverses.data())));
  return FloatVec{_mm512_castsi512_ps(_mm512_sub_epi32(inverse, exponent))};
#else
  const auto values = e4m3_values(code);
  auto inverse = hn::Div(hn::Set(Floats(), 1.0f), values);
  if constexpr (down) {
    const auto above = hn::Lt(residuals(inverse, values), hn::Zero(Floats()));
    const auto step = hn::IfThenElseZero(hn::RebindMask(Words(), above), word(1));
    inverse = float_of(hn::Sub(bits_of(inverse), step));
  }
  return hn::IfThenElseZero(hn::RebindMask(Floats(), hn::Ne(code, word(0))), inverse);
#endif
}

// The residuals 1 - inverse * value of e4m3_inverses<true>().
HWY_INLINE FloatVec e4m3_residuals(WordVec code) {
#if LEEWAY_RAW_AVX512
  alignas(64) static constexpr std::array<float, 16> kResiduals = e4m3_residual_table();
  return FloatVec{
      _mm512_permutexvar_ps(e4m3_significands(code), _mm512_load_ps(kResiduals.data()))};
#else
  return residuals(e4m3_inverses<true>(code), e4m3_values(code));
#endif
}

// A rule's code() turns a block's largest finite magnitude into the scale to store. inverse() is
// the factor on elements; 0 for a blank block. Rules with rests (block_scale.h) have residual().
template <bool stochastic>
struct Nvfp4Rule {
  static constexpr std::uint32_t kNanCode = 0x7F;
  static constexpr bool kHasRests = !stochastic;
  float packet_inverse;

  HWY_INLINE WordVec code(FloatVec amax) const {
    return e4m3_scale_codes<stochastic>(hn::Mul(amax, hn::Set(Floats(), packet_inverse)));
  }
  HWY_INLINE FloatVec inverse(WordVec code) const {
    return hn::Mul(e4m3_inverses<!stochastic>(code), hn::Set(Floats(), packet_inverse));
  }
  HWY_INLINE FloatVec residual(WordVec code) const { return e4m3_residuals(code); }
};

template <bool round_up>
struct TensorEngineRule {
  static constexpr std::uint32_t kNanCode = 0x7F;
  static constexpr bool kHasRests = false;
  float encode_scale;

  HWY_INLINE WordVec code(FloatVec amax) const {
    const auto most = hn::Set(Floats(), kFloatMax);
    if (round_up)
      return e4m3_scale_codes<true>(hn::Min(hn::Mul(amax, hn::Set(Floats(), encode_scale)), most));
    return e4m3_nearest(hn::Min(hn::Mul(amax, hn::Set(Floats(), encode_scale * kFp4Sixth)), most));
  }
  HWY_INLINE FloatVec inverse(WordVec code) const {
    const auto decoded = hn::Mul(e4m3_values(code), hn::Set(Floats(), 1.0f / encode_scale));
    const auto inverse =
        hn::Min(hn::Div(hn::Set(Floats(), 1.0f), decoded), hn::Set(Floats(), kFloatMax));
    return hn::IfThenElseZero(hn::RebindMask(Floats(), hn::Ne(code, word(0))), inverse);
  }
};

// MX scales. `added` is added to a magnitude's bits before its exponent is taken, as ScaleRule
// says.
struct PowerOfTwoRule {
  static constexpr std::uint32_t kNanCode = 0xFF;
  static constexpr bool kHasRests = false;
  std::uint32_t added;
  std::int32_t exponent;

  PowerOfTwoRule(const Minifloat& element, ScaleRule rule) {
    const auto largest_bits = std::bit_cast<std::uint32_t>(largest(element));
    exponent = static_cast<std::int32_t>(largest_bits >> 23) - 127;
    added = 0;
    if (rule == ScaleRule::even) added = 1u << (22 - element.mantissa_bits);
    // With this value, the sum of `added` and a magnitude's bits carries into the exponent if the
    // magnitude's mantissa is above that of the largest element.
    if (rule == ScaleRule::ceil) added = 0x7FFFFF - (largest_bits & 0x7FFFFF);
  }
  HWY_INLINE WordVec code(FloatVec amax) const {
    const auto field = hn::ShiftRight<23>(hn::Add(bits_of(amax), word(added)));
    const auto code = hn::Sub(hn::BitCast(Integers(), field), hn::Set(Integers(), exponent));
    return hn::BitCast(Words(),
                       hn::Max(hn::Zero(Integers()), hn::Min(code, hn::Set(Integers(), 254))));
  }
  HWY_INLINE FloatVec inverse(WordVec code) const {
    const auto normal = hn::ShiftLeft<23>(hn::Sub(word(254), code));
    return float_of(hn::Max(normal, word(0x400000)));  // code 254: 2^-127 is subnormal
  }
};

// Returns the codes to store for a vector of blocks. Writes inverses, and rests if the rule has
// them. Sets bits in `any_blank` where an inverse is 0.
template <class Rule>
HWY_INLINE auto scale_codes(const Rule& rule, const std::uint32_t* maxima, float* inverses,
                            float* rests, WordVec& any_blank) {
  const Words d;
  const auto amax = hn::LoadU(d, maxima);
  const auto finite = hn::Lt(amax, word(kInfinityBits));
  const auto nonzero = hn::Ne(amax, word(0));
  const auto code = hn::IfThenElseZero(nonzero, rule.code(float_of(amax)));
  const auto inverse =
      hn::IfThenElseZero(hn::RebindMask(Floats(), hn::And(finite, nonzero)), rule.inverse(code));
  any_blank = hn::Or(any_blank, hn::VecFromMask(d, hn::Eq(bits_of(inverse), word(0))));
  hn::StoreU(inverse, Floats(), inverses);
  if constexpr (Rule::kHasRests) hn::StoreU(hn::Mul(rule.residual(code), inverse), Floats(), rests);
  const auto stored = hn::BitCast(Integers(), hn::IfThenElse(finite, code, word(Rule::kNanCode)));
  return hn::DemoteTo(hn::Rebind<std::uint8_t, Words>(), stored);
}

// Writes scales, inverses, and rests if the rule has them, for whole vectors. Returns whether any
// block is blank, padding of the last vector included.
template <class Rule>
bool write_scales(const Rule& rule, const std::uint32_t* maxima, std::size_t blocks,
                  std::byte* stored, float* inverses, float* rests) {
  const Words d;
  const hn::Rebind<std::uint8_t, Words> d8;
  auto* to = reinterpret_cast<std::uint8_t*>(stored);
  auto any_blank = hn::Zero(d);
  std::size_t b = 0;
  for (; b + hn::Lanes(d) <= blocks; b += hn::Lanes(d))
    hn::StoreU(scale_codes(rule, maxima + b, inverses + b, rests + b, any_blank), d8, to + b);
  if (b < blocks) {
    std::uint8_t last[16];
    hn::StoreU(scale_codes(rule, maxima + b, inverses + b, rests + b, any_blank), d8, last);
    std::memcpy(to + b, last, blocks - b);
  }
  return !hn::AllFalse(d, hn::Ne(any_blank, word(0)));
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
