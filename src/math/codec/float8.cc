// Encoding rounds whole vectors (minifloat-inl.h); decoding looks up one element at a time.
#include "codec/float8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/float8.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/minifloat-inl.h"
#include "codec/scaled_vectors-inl.h"
#include "codec/unaligned-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

#if LEEWAY_SCALED_VECTORS

template <Minifloat element>
HWY_INLINE WordVec float8_codes(FloatVec v) {
  const auto magnitude = magnitude_bits(v);
  auto code = hn::And(quanta_codes<element, 0>(v), word(0x7F));
  if constexpr (element == kE5M2)
    code = hn::IfThenElse(hn::Eq(magnitude, word(0x7F800000)), word(0x7C), code);
  const auto signed_code = hn::Or(code, hn::And(hn::ShiftRight<24>(bits_of(v)), word(0x80)));
  return hn::IfThenElse(hn::Gt(magnitude, word(0x7F800000)), word(0x7F), signed_code);
}

// Encodes the elements that fill whole vectors. Returns their number.
template <Minifloat element>
std::size_t encode_vectors(std::span<const float> in, std::byte* out) {
  using CodeBytes = hn::Rebind<std::uint8_t, Floats>;
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= in.size(); i += lanes) {
    const auto codes = float8_codes<element>(hn::LoadU(Floats(), in.data() + i));
    store_unaligned(CodeBytes(), hn::DemoteTo(CodeBytes(), hn::BitCast(Integers(), codes)),
                    out + i);
  }
  return i;
}

std::size_t encode_float8_kernel(DataType type, std::span<const float> in, std::byte* out) {
  return type == DataType::f8e4m3 ? encode_vectors<kE4M3>(in, out) : encode_vectors<kE5M2>(in, out);
}

#else

std::size_t encode_float8_kernel(DataType, std::span<const float>, std::byte*) {
  return 0;
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {
namespace {

HWY_EXPORT(encode_float8_kernel);

}  // namespace

void encode_float8(DataType type, std::span<const float> in, std::byte* out) {
  for (std::size_t i = HWY_DYNAMIC_DISPATCH(encode_float8_kernel)(type, in, out); i < in.size();
       ++i) {
    out[i] = static_cast<std::byte>(type == DataType::f8e4m3 ? f8e4m3_from_float(in[i]).bits
                                                             : f8e5m2_from_float(in[i]).bits);
  }
}

void decode_float8(DataType type, const std::byte* in, std::span<float> out) {
  const auto& values = type == DataType::f8e4m3 ? kValuesE4M3 : kValuesE5M2;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = values[static_cast<std::size_t>(in[i])];
}

}  // namespace leeway::codec
#endif
