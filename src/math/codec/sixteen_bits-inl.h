// Vectors of float32 from elements of 16 bits, exactly. Included once for every instruction set.
#if defined(LEEWAY_CODEC_SIXTEEN_BITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_SIXTEEN_BITS_INL_H_
#undef LEEWAY_CODEC_SIXTEEN_BITS_INL_H_
#else
#define LEEWAY_CODEC_SIXTEEN_BITS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "codec/unaligned-inl.h"

// Processors with AVX2 have F16C. Its conversions agree with element.h in every bit, NaN payloads
// included.
#undef LEEWAY_HARDWARE_HALF
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define LEEWAY_HARDWARE_HALF 1
#else
#define LEEWAY_HARDWARE_HALF 0
#endif

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

// The bits of half floats or bfloat16, one in the lower half of each lane.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::Rebind<std::uint32_t, D>> load_half_words(
    D, const std::byte* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::PromoteTo(hn::Rebind<std::uint32_t, D>(),
                       load_unaligned(hn::Rebind<std::uint16_t, D>(), from));
}

template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_bfloat16(D d, const std::byte* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::BitCast(d, hn::ShiftLeft<16>(load_half_words(d, from)));
}

// Converts half floats, one in the lower half of each lane.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> floats_of_halves(
    D d, hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::Rebind<std::uint32_t, D>> bits) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<std::uint32_t, D> words;
  const auto word = [words](std::uint32_t value) HWY_ATTR { return hn::Set(words, value); };
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, word(0x8000)));
  const auto magnitude = hn::And(bits, word(0x7FFF));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(shifted, word(0x38000000));
  const auto one_up = hn::BitCast(d, hn::Add(shifted, word(0x38800000)));
  const auto subnormal = hn::BitCast(words, hn::Sub(one_up, hn::Set(d, 0x1p-14f)));
  const auto infinite = hn::Or(shifted, word(0x7F800000));
  const auto finite = hn::IfThenElse(hn::Lt(magnitude, word(0x0400)), subnormal, normal);
  auto result = hn::IfThenElse(hn::Gt(magnitude, word(0x7BFF)), infinite, finite);
  result =
      hn::IfThenElse(hn::Gt(magnitude, word(0x7C00)), hn::Or(infinite, word(0x00400000)), result);
  return hn::BitCast(d, hn::Or(sign, result));
}

template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_half(D d, const std::byte* from) {
#if LEEWAY_HARDWARE_HALF
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::PromoteTo(d, load_unaligned(hn::Rebind<hwy::float16_t, D>(), from));
#else
  return floats_of_halves(d, load_half_words(d, from));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
