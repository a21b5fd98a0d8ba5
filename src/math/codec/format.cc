// Sizes of every payload format, and what automatic settings resolve to.
#include "base/contracts.h"
#include "codec/codec.h"

namespace leeway::codec {
namespace {

struct Sizes {
  std::size_t header_bytes;
  std::size_t block_elements;
  std::size_t block_bytes;
};

constexpr std::size_t kFloatScale = 4;
constexpr std::size_t kByteScale = 1;

Sizes sparse_sizes(std::size_t kept, std::size_t group) {
  const std::size_t elements = std::max(group, kPacketElementsMultiple);
  return {kFloatScale, elements, elements / 8 + elements / group * kept};
}

Sizes sizes_of(const CodecOptions& options, DataType dtype) {
  switch (options.codec) {
    case Codec::fp16:
    case Codec::bf16:
      return {0, 1, 2};
    case Codec::fp8_e4m3:
    case Codec::fp8_e5m2:
    case Codec::int8:
      return {kFloatScale, 1, 1};
    case Codec::fp8_e4m3_block:
    case Codec::fp8_e5m2_block:
      return {0, 128, kFloatScale + 128};
    case Codec::mxfp8_e4m3:
    case Codec::mxfp8_e5m2:
      return {0, 32, kByteScale + 32};
    case Codec::mxfp6_e2m3:
    case Codec::mxfp6_e3m2:
      return {0, 32, kByteScale + 24};
    case Codec::mxfp4:
      return {0, 32, kByteScale + 16};
    case Codec::nvfp4:
      return {kByteScale, 16, kByteScale + 8};
    case Codec::nvfp4_te:
      return {kFloatScale, 16, kByteScale + 8};
    case Codec::luq:
      return {kFloatScale, 2, options.draws};
    case Codec::sparse:
      return sparse_sizes(options.kept, options.group);
    case Codec::fp32:
      return {0, 1, sizeof(float)};
    case Codec::native:
    case Codec::automatic:
      break;
  }
  return {0, 1, size_of(dtype)};
}

bool always_stochastic(Codec codec) {
  return codec == Codec::luq || codec == Codec::sparse;
}
bool below_16_bits(Codec codec) {
  return codec > Codec::bf16;
}

Rounding resolve_rounding(const CodecOptions& options, Purpose purpose) {
  if (always_stochastic(options.codec)) return Rounding::stochastic;
  if (options.codec <= Codec::fp32) return Rounding::nearest;
  if (options.rounding != Rounding::automatic) return options.rounding;
  return purpose == Purpose::sum && below_16_bits(options.codec) ? Rounding::stochastic
                                                                 : Rounding::nearest;
}

ScaleRule resolve_scale_rule(const CodecOptions& options, Rounding rounding) {
  if (rounding == Rounding::stochastic) return ScaleRule::ceil;
  if (options.scale_rule != ScaleRule::automatic) return options.scale_rule;
  if (options.codec == Codec::mxfp4) return ScaleRule::even;
  return options.codec == Codec::mxfp8_e4m3 ? ScaleRule::ceil : ScaleRule::floor;
}

}  // namespace

CodecOptions Format::named() const {
  CodecOptions named = options;
  const Codec codec = options.codec;
  if (codec <= Codec::fp32 || always_stochastic(codec)) named.rounding = Rounding::automatic;
  if (codec < Codec::mxfp8_e4m3 || codec > Codec::mxfp4) named.scale_rule = ScaleRule::automatic;
  return named;
}

std::size_t Format::elements_for(std::size_t bytes_max) const {
  std::size_t elements = (bytes_max - header_bytes) / block_bytes * block_elements;
  if (!identity()) elements = std::min(elements, kPacketElementsMax);
  const bool rotation_fits = options.rotate && elements >= kRotationElements;
  const std::size_t multiple =
      std::max(rotation_fits ? kRotationElements : kPacketElementsMultiple, block_elements);
  return elements / multiple * multiple;
}

bool is_encodable(DataType dtype) {
  return dtype == DataType::f32 || dtype == DataType::f16 || dtype == DataType::bf16;
}

Format format_of(const CodecOptions& options, DataType dtype, Purpose purpose) {
  LEEWAY_ASSERT(options.codec != Codec::automatic);
  LEEWAY_ASSERT(options.codec == Codec::native || is_encodable(dtype));
  const Sizes sizes = sizes_of(options, dtype);
  Format format{options, dtype, sizes.header_bytes, sizes.block_elements, sizes.block_bytes};
  if (options.codec == Codec::native && dtype == DataType::f32) format.options.codec = Codec::fp32;
  format.options.rounding = resolve_rounding(options, purpose);
  format.options.scale_rule = resolve_scale_rule(options, format.options.rounding);
  return format;
}

}  // namespace leeway::codec
