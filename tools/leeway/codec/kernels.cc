#include "codec/kernels.h"

#include <cstring>

#include "codec/element.h"
#include "codec/scaled.h"
#include "codec/scaled_layout.h"

namespace leeway::tools::codecs {
namespace {

void encode_scaled(const codec::Format& format, std::span<const float> in,
                   const codec::Place& place, MutableByteSpan out) {
  codec::scalar::encode_scaled(format, in, place, out.data());
}
void decode_scaled(const codec::Format& format, ByteSpan in, const codec::Place&,
                   std::span<float> out) {
  codec::scalar::assign_scaled(format, in.data(), 1.0f, out);
}
void accumulate_scaled(const codec::Format& format, ByteSpan in, float scale,
                       std::span<float> sum) {
  codec::scalar::accumulate_scaled(format, in.data(), scale, sum);
}

// Kernels of fp16 and bf16: `Element` is Half or BFloat16.
template <typename Element, Element (*from_float)(float), float (*to_float)(Element)>
struct FloatKernels {
  static Element load(ByteSpan in, std::size_t i) {
    Element element;
    std::memcpy(&element, in.data() + i * sizeof(Element), sizeof(Element));
    return element;
  }
  static void encode(const codec::Format&, std::span<const float> in, const codec::Place&,
                     MutableByteSpan out) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const Element element = from_float(in[i]);
      std::memcpy(out.data() + i * sizeof(Element), &element, sizeof(Element));
    }
  }
  static void decode(const codec::Format&, ByteSpan in, const codec::Place&, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = to_float(load(in, i));
  }
  static void accumulate(const codec::Format&, ByteSpan in, float scale, std::span<float> sum) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + scale * to_float(load(in, i));
  }
};

using Fp16 = FloatKernels<Half, codec::half_from_float, codec::float_from_half>;
using Bf16 = FloatKernels<BFloat16, codec::bfloat16_from_float, codec::float_from_bfloat16>;

}  // namespace

Kernels library_kernels() {
  return {codec::encode, codec::decode, codec::accumulate};
}

std::optional<Kernels> defining_kernels(const codec::Format& format) {
  const Codec codec = format.options.codec;
  if (format.options.rotate) return std::nullopt;
  if (codec::is_scaled(codec)) return Kernels{encode_scaled, decode_scaled, accumulate_scaled};
  if (format.stochastic()) return std::nullopt;
  if (codec == Codec::fp16) return Kernels{Fp16::encode, Fp16::decode, Fp16::accumulate};
  if (codec == Codec::bf16) return Kernels{Bf16::encode, Bf16::decode, Bf16::accumulate};
  return std::nullopt;
}

}  // namespace leeway::tools::codecs
