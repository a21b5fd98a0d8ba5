// Checks the lengths once a call, then hands over to the kernels. float32 on the wire is a copy.
#include "codec/codec.h"

#include <array>
#include <cstring>

#include "base/contracts.h"
#include "codec/float_kernels.h"

namespace leeway::codec {
namespace {

constexpr Format element_format(Codec codec, DataType dtype, std::size_t bytes) {
  return {
      .id = codec, .element = dtype, .header_bytes = 0, .block_elements = 1, .block_bytes = bytes};
}

constexpr std::array<Format, kDataTypeCount> kNative = [] {
  std::array<Format, kDataTypeCount> formats{};
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const auto dtype = static_cast<DataType>(i);
    formats[i] = element_format(Codec::native, dtype, size_of(dtype));
  }
  return formats;
}();
constexpr Format kFp32 = element_format(Codec::fp32, DataType::f32, 4);
constexpr Format kFp16 = element_format(Codec::fp16, DataType::f32, 2);
constexpr Format kBf16 = element_format(Codec::bf16, DataType::f32, 2);

// Checks the lengths and says which element the kernels will meet: native half and bfloat16 tensors
// are encoded as they lie.
Codec kernel_of(const Format& format, std::size_t elements, std::size_t bytes) {
  LEEWAY_ASSERT(format.encoded_bytes(elements) == bytes);
  if (format.id != Codec::native) return format.id;
  LEEWAY_ASSERT(format.element == DataType::f16 || format.element == DataType::bf16);
  return format.element == DataType::f16 ? Codec::fp16 : Codec::bf16;
}

}  // namespace

const Format& format_of(Codec codec, DataType dtype) {
  LEEWAY_ASSERT(codec == Codec::native || dtype == DataType::f32);
  switch (codec) {
    case Codec::fp32:
      return kFp32;
    case Codec::fp16:
      return kFp16;
    case Codec::bf16:
      return kBf16;
    case Codec::native:
      break;
  }
  return dtype == DataType::f32 ? kFp32 : kNative[static_cast<std::size_t>(dtype)];
}

void encode(const Format& format, std::span<const float> in, const EncodeContext& /*context*/,
            MutableByteSpan out) {
  const Codec kernel = kernel_of(format, in.size(), out.size());
  if (kernel != Codec::fp32) return encode_floats(kernel, in, out.data());
  if (!in.empty()) std::memcpy(out.data(), in.data(), out.size());
}

void decode(const Format& format, ByteSpan in, std::span<float> out) {
  const Codec kernel = kernel_of(format, out.size(), in.size());
  if (kernel != Codec::fp32) return decode_floats(kernel, in.data(), out);
  if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
}

void accumulate(const Format& format, ByteSpan in, float scale, std::span<float> sum) {
  accumulate_floats(kernel_of(format, sum.size(), in.size()), in.data(), scale, sum);
}

void accumulate_first(const Format& format, ByteSpan in, float scale, std::span<float> sum) {
  scale_floats(kernel_of(format, sum.size(), in.size()), in.data(), scale, sum);
}

}  // namespace leeway::codec
