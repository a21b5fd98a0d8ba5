// Encoding of float32 in the block-scaled formats, compiled for every instruction set
// (scaled_encoder-inl.h).
#include "base/contracts.h"
#include "codec/scaled.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/scaled_encode.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/scaled_encoder-inl.h"
#include "codec/scaled_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

void encode_kernel(const Format& format, std::span<const float> in, const Place& place,
                   std::byte* out) {
#if LEEWAY_SCALED_VECTORS
  Encoder<float>(format, in, place, out).run();
#else
  scalar::encode_scaled(format, in, place, out);
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {

HWY_EXPORT(encode_kernel);

void encode_scaled(const Format& format, std::span<const float> in, const Place& place,
                   std::byte* out) {
  LEEWAY_ASSERT(in.size() <=
                kPacketElementsMax);  // the kernels keep a packet's scales on the stack
  HWY_DYNAMIC_DISPATCH(encode_kernel)(format, in, place, out);
}

}  // namespace leeway::codec
#endif
