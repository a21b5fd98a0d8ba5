// Each operation is one loop over a description of the element (Fp32, Fp16, Bf16). The description
// says how a vector of elements and how a single element is read and written. The scalar definition
// handles the tail.
#include "codec/float_kernels.h"

#include <array>

#include "codec/element.h"
#include "codec/load_store.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/float_kernels.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/sixteen_bits-inl.h"
#include "codec/unaligned-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::Rebind<std::uint32_t, Floats>;
using Integers = hn::Rebind<std::int32_t, Floats>;
using HalfWords = hn::Rebind<std::uint16_t, Floats>;

HWY_INLINE hn::Vec<Words> word(std::uint32_t value) {
  return hn::Set(Words(), value);
}
HWY_INLINE hn::Vec<Words> bits_of(hn::Vec<Floats> v) {
  return hn::BitCast(Words(), v);
}
HWY_INLINE hn::Vec<Floats> float_of(hn::Vec<Words> v) {
  return hn::BitCast(Floats(), v);
}

// Requires values below 2^16, so that the saturation of DemoteTo never acts.
HWY_INLINE void store_half_words(hn::Vec<Words> v, std::byte* to) {
  store_unaligned(HalfWords(), hn::DemoteTo(HalfWords(), hn::BitCast(Integers(), v)), to);
}
struct Fp32 {
  static constexpr std::size_t kBytes = 4;
  static HWY_INLINE hn::Vec<Floats> read(const std::byte* from) {
    return load_unaligned(Floats(), from);
  }
  static HWY_INLINE float read_one(const std::byte* from) { return load<float>(from); }
};

struct Fp16 {
  static constexpr std::size_t kBytes = 2;

  static HWY_INLINE hn::Vec<Floats> read(const std::byte* from) {
    return load_half(Floats(), from);
  }

  static HWY_INLINE void write(hn::Vec<Floats> v, std::byte* to) {
#if LEEWAY_HARDWARE_HALF
    const hn::Rebind<hwy::float16_t, Floats> halves;
    store_unaligned(halves, hn::DemoteTo(halves, v), to);
#else
    const auto bits = bits_of(v);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), word(0x8000));
    const auto magnitude = hn::And(bits, word(0x7FFFFFFF));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), word(1));
    const auto normal =
        hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, word(0x38000000 - 0xFFF)), odd));
    const auto subnormal =
        hn::Sub(bits_of(hn::Add(float_of(magnitude), hn::Set(Floats(), 0.5f))), word(0x3F000000));
    const auto payload = hn::And(hn::ShiftRight<13>(magnitude), word(0x1FF));
    auto half = hn::IfThenElse(hn::Lt(magnitude, word(0x38800000)), subnormal, normal);
    half = hn::IfThenElse(hn::Lt(magnitude, word(0x33000000)), word(0), half);
    half = hn::IfThenElse(hn::Gt(magnitude, word(0x477FFFFF)), word(0x7C00), half);
    half = hn::IfThenElse(hn::Gt(magnitude, word(0x7F800000)), hn::Or(payload, word(0x7E00)), half);
    store_half_words(hn::Or(sign, half), to);
#endif
  }

  static HWY_INLINE float read_one(const std::byte* from) {
    return float_from_half(load<Half>(from));
  }
  static HWY_INLINE void write_one(float value, std::byte* to) {
    store(to, half_from_float(value));
  }
};

struct Bf16 {
  static constexpr std::size_t kBytes = 2;

  static HWY_INLINE hn::Vec<Floats> read(const std::byte* from) {
    return load_bfloat16(Floats(), from);
  }
  // The bfloat16 instruction is not used, because it flushes subnormals.
  static HWY_INLINE void write(hn::Vec<Floats> v, std::byte* to) {
    const auto bits = bits_of(v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), word(1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, word(0x7FFF)), odd));
    const auto quiet = hn::Or(hn::ShiftRight<16>(bits), word(0x40));
    const auto is_nan = hn::Gt(hn::And(bits, word(0x7FFFFFFF)), word(0x7F800000));
    store_half_words(hn::IfThenElse(is_nan, quiet, rounded), to);
  }
  static HWY_INLINE float read_one(const std::byte* from) {
    return float_from_bfloat16(load<BFloat16>(from));
  }
  static HWY_INLINE void write_one(float value, std::byte* to) {
    store(to, bfloat16_from_float(value));
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

// Encodes 32 elements at once. The upper half of a float's bits is rounded up if the lower half is
// above its middle, or is at its middle and the upper half is odd. Stops before the first group
// that has a NaN or infinity, which this rule would not encode. Returns the number of elements
// encoded.
std::size_t encode_whole_vectors(Bf16, const float* in, std::size_t count, std::byte* out) {
  constexpr std::size_t kGroup = 256;
  alignas(64) static constexpr std::array<std::uint16_t, 32> kUpper = [] {
    std::array<std::uint16_t, 32> places{};
    for (std::uint16_t i = 0; i < 32; ++i) places[i] = static_cast<std::uint16_t>(2 * i + 1);
    return places;
  }();
  const __m512i upper_places = _mm512_load_si512(kUpper.data());
  const __m512i lower_places = _mm512_sub_epi16(upper_places, _mm512_set1_epi16(1));
  const __m512i one = _mm512_set1_epi16(1);
  const __m512i not_finite = _mm512_set1_epi16(static_cast<short>(0xFF00));  // without sign
  std::size_t done = 0;
  for (; done + kGroup <= count; done += kGroup) {
    __m512i largest = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (std::size_t i = done; i < done + kGroup; i += 32) {
      const __m512i first = _mm512_loadu_si512(in + i);
      const __m512i second = _mm512_loadu_si512(in + i + 16);
      const __m512i upper = _mm512_permutex2var_epi16(first, upper_places, second);
      const __m512i lower = _mm512_permutex2var_epi16(first, lower_places, second);
      const __m512i even = _mm512_andnot_si512(upper, one);
      const __m512i up = _mm512_srli_epi16(_mm512_subs_epu16(lower, even), 15);
      _mm512_storeu_si512(out + i * Bf16::kBytes, _mm512_add_epi16(upper, up));
      largest = _mm512_max_epu16(largest, _mm512_add_epi16(upper, upper));
    }
    if (_mm512_cmpge_epu16_mask(largest, not_finite) != 0) [[unlikely]]
      break;
  }
  return done;
}

#else
std::size_t encode_whole_vectors(Bf16, const float*, std::size_t, std::byte*) {
  return 0;
}
#endif

std::size_t encode_whole_vectors(Fp16, const float*, std::size_t, std::byte*) {
  return 0;
}

template <class Element>
void encode_as(const float* in, std::size_t count, std::byte* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = encode_whole_vectors(Element(), in, count, out);
  for (; i + lanes <= count; i += lanes)
    Element::write(hn::LoadU(Floats(), in + i), out + i * Element::kBytes);
  for (; i < count; ++i) Element::write_one(in[i], out + i * Element::kBytes);
}

template <class Element>
void decode_as(const std::byte* in, float* out, std::size_t count) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(Element::read(in + i * Element::kBytes), Floats(), out + i);
  for (; i < count; ++i) out[i] = Element::read_one(in + i * Element::kBytes);
}

template <class Element>
void accumulate_as(const std::byte* in, float scale, float* sum, std::size_t count) {
  const auto scales = hn::Set(Floats(), scale);
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto scaled = hn::Mul(scales, Element::read(in + i * Element::kBytes));
    hn::StoreU(hn::Add(hn::LoadU(Floats(), sum + i), scaled), Floats(), sum + i);
  }
  for (; i < count; ++i) sum[i] = sum[i] + scale * Element::read_one(in + i * Element::kBytes);
}

template <class Element>
void scale_as(const std::byte* in, float scale, float* out, std::size_t count) {
  const auto scales = hn::Set(Floats(), scale);
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(scales, Element::read(in + i * Element::kBytes)), Floats(), out + i);
  }
  for (; i < count; ++i) out[i] = scale * Element::read_one(in + i * Element::kBytes);
}

void encode_kernel(Codec codec, std::span<const float> in, std::byte* out) {
  codec == Codec::fp16 ? encode_as<Fp16>(in.data(), in.size(), out)
                       : encode_as<Bf16>(in.data(), in.size(), out);
}

void decode_kernel(Codec codec, const std::byte* in, std::span<float> out) {
  codec == Codec::fp16 ? decode_as<Fp16>(in, out.data(), out.size())
                       : decode_as<Bf16>(in, out.data(), out.size());
}

void accumulate_kernel(Codec codec, const std::byte* in, float scale, std::span<float> sum) {
  switch (codec) {
    case Codec::fp16:
      return accumulate_as<Fp16>(in, scale, sum.data(), sum.size());
    case Codec::bf16:
      return accumulate_as<Bf16>(in, scale, sum.data(), sum.size());
    default:
      return accumulate_as<Fp32>(in, scale, sum.data(), sum.size());
  }
}

void scale_kernel(Codec codec, const std::byte* in, float scale, std::span<float> out) {
  switch (codec) {
    case Codec::fp16:
      return scale_as<Fp16>(in, scale, out.data(), out.size());
    case Codec::bf16:
      return scale_as<Bf16>(in, scale, out.data(), out.size());
    default:
      return scale_as<Fp32>(in, scale, out.data(), out.size());
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {

HWY_EXPORT(encode_kernel);
HWY_EXPORT(decode_kernel);
HWY_EXPORT(accumulate_kernel);
HWY_EXPORT(scale_kernel);

void encode_floats(Codec codec, std::span<const float> in, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(encode_kernel)(codec, in, out);
}
void decode_floats(Codec codec, const std::byte* in, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(decode_kernel)(codec, in, out);
}
void accumulate_floats(Codec codec, const std::byte* in, float scale, std::span<float> sum) {
  HWY_DYNAMIC_DISPATCH(accumulate_kernel)(codec, in, scale, sum);
}
void scale_floats(Codec codec, const std::byte* in, float scale, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(scale_kernel)(codec, in, scale, out);
}

}  // namespace leeway::codec
#endif
