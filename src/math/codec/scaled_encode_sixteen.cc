// Encoding of float16 and bfloat16 in the block-scaled formats, compiled for every instruction set
// (scaled_encoder-inl.h). A file of its own, because these kernels take long to compile.
#include <algorithm>
#include <array>

#include "base/contracts.h"
#include "codec/element.h"
#include "codec/scaled.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/scaled_encode_sixteen.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/scaled_encoder-inl.h"
#include "codec/scaled_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
void encode_elements(const Format& format, std::span<const T> in, const Place& place,
                     std::byte* out) {
#if LEEWAY_SCALED_VECTORS
  Encoder<T>(format, in, place, out).run();
#else
  std::array<float, kPacketElementsMax> values;
  std::transform(in.begin(), in.end(), values.begin(), [](T value) { return as_float(value); });
  scalar::encode_scaled(format, std::span(values).first(in.size()), place, out);
#endif
}

void encode_half_kernel(const Format& format, std::span<const Half> in, const Place& place,
                        std::byte* out) {
  encode_elements(format, in, place, out);
}
void encode_bfloat16_kernel(const Format& format, std::span<const BFloat16> in, const Place& place,
                            std::byte* out) {
  encode_elements(format, in, place, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {

HWY_EXPORT(encode_half_kernel);
HWY_EXPORT(encode_bfloat16_kernel);

void encode_scaled(const Format& format, std::span<const Half> in, const Place& place,
                   std::byte* out) {
  LEEWAY_ASSERT(in.size() <= kPacketElementsMax);
  HWY_DYNAMIC_DISPATCH(encode_half_kernel)(format, in, place, out);
}
void encode_scaled(const Format& format, std::span<const BFloat16> in, const Place& place,
                   std::byte* out) {
  LEEWAY_ASSERT(in.size() <= kPacketElementsMax);
  HWY_DYNAMIC_DISPATCH(encode_bfloat16_kernel)(format, in, place, out);
}

}  // namespace leeway::codec
#endif
