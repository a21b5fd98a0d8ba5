// Checks the lengths and sets the floating-point mode once a call, then hands over to the family of
// the format.
#include "codec/codec.h"

#include <array>
#include <cstring>

#include "base/contracts.h"
#include "codec/float_kernels.h"
#include "codec/float_mode.h"
#include "codec/rotation.h"
#include "codec/scaled.h"
#include "codec/scaled_layout.h"
#include "codec/sparse.h"
#include "codec/stochastic_floats.h"

namespace leeway::codec {
namespace {

// Returns the codec that names the float kernel: native half and bfloat16 tensors go as fp16 and
// bf16.
Codec float_kernel_of(const Format& format) {
  if (format.options.codec != Codec::native) return format.options.codec;
  LEEWAY_ASSERT(format.element == DataType::f16 || format.element == DataType::bf16);
  return format.element == DataType::f16 ? Codec::fp16 : Codec::bf16;
}

// Room for the floats of a packet.
using PacketFloats = std::array<float, kPacketElementsMax>;

// Returns the codec that names the kernel of the tensor's own 16-bit type.
Codec kernel_of_element(const Format& format) {
  return format.element == DataType::f16 ? Codec::fp16 : Codec::bf16;
}

void encode_straight(const Format& format, std::span<const float> in, const Place& place,
                     std::byte* out) {
  const Codec codec = format.options.codec;
  if (is_scaled(codec)) return encode_scaled(format, in, place, out);
  if (codec == Codec::sparse) return encode_sparse(format, in, place, out);
  if (codec == Codec::fp32) {
    if (!in.empty()) std::memcpy(out, in.data(), in.size_bytes());
    return;
  }
  if (format.stochastic()) return encode_floats_stochastic(codec, in, place, out);
  encode_floats(float_kernel_of(format), in, out);
}

// Rotates `values` in place, then encodes them.
void encode_rotated(const Format& format, std::span<float> values, const Place& place,
                    std::byte* out) {
  rotate(place, values);
  encode_straight(format, values, place, out);
}

void encode_sixteen_bits(const Format& format, const std::byte* in, std::size_t elements,
                         const Place& place, std::byte* out) {
  if (format.element == DataType::f16) {
    encode_scaled(format, std::span(reinterpret_cast<const Half*>(in), elements), place, out);
  } else {
    encode_scaled(format, std::span(reinterpret_cast<const BFloat16*>(in), elements), place, out);
  }
}

void assign(const Format& format, const std::byte* in, float scale, std::span<float> out) {
  if (is_scaled(format.options.codec)) return assign_scaled(format, in, scale, out);
  if (format.options.codec == Codec::sparse) return assign_sparse(format, in, scale, out);
  scale_floats(float_kernel_of(format), in, scale, out);
}

}  // namespace

void encode(const Format& format, std::span<const float> in, const Place& place,
            MutableByteSpan out) {
  LEEWAY_ASSERT(format.encoded_bytes(in.size()) == out.size());
  const StandardFloatMode mode;
  if (!format.options.rotate) return encode_straight(format, in, place, out.data());
  LEEWAY_ASSERT(in.size() <= kPacketElementsMax);
  alignas(64) PacketFloats rotated;  // NOLINT(cppcoreguidelines-pro-type-member-init): what is used
                                     // is written
  std::copy(in.begin(), in.end(), rotated.begin());
  encode_rotated(format, std::span(rotated).first(in.size()), place, out.data());
}

void encode_elements(const Format& format, ByteSpan in, const Place& place, MutableByteSpan out) {
  const std::size_t elements = in.size() / size_of(format.element);
  LEEWAY_ASSERT(is_encodable(format.element) && format.encoded_bytes(elements) == out.size());
  if (format.element == DataType::f32)
    return encode(format, {reinterpret_cast<const float*>(in.data()), elements}, place, out);
  const StandardFloatMode mode;
  const bool in_registers = is_scaled(format.options.codec) && !format.options.rotate;
  if (in_registers) return encode_sixteen_bits(format, in.data(), elements, place, out.data());
  LEEWAY_ASSERT(elements <= kPacketElementsMax);
  alignas(64) PacketFloats floats;  // NOLINT(cppcoreguidelines-pro-type-member-init): as above
  const std::span values = std::span(floats).first(elements);
  decode_floats(kernel_of_element(format), in.data(), values);
  format.options.rotate ? encode_rotated(format, values, place, out.data())
                        : encode_straight(format, values, place, out.data());
}

void decode(const Format& format, ByteSpan in, const Place& place, std::span<float> out) {
  LEEWAY_ASSERT(format.encoded_bytes(out.size()) == in.size());
  const StandardFloatMode mode;
  const Codec codec = format.options.codec;
  if (codec == Codec::fp32) {
    if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
  } else if (codec <= Codec::bf16) {
    decode_floats(float_kernel_of(format), in.data(), out);
  } else {
    assign(format, in.data(), 1.0f, out);
  }
  if (format.options.rotate) unrotate(place, out);
}

void decode_elements(const Format& format, ByteSpan in, const Place& place, MutableByteSpan out) {
  const std::size_t elements = out.size() / size_of(format.element);
  if (format.element == DataType::f32)
    return decode(format, in, place, {reinterpret_cast<float*>(out.data()), elements});
  LEEWAY_ASSERT(is_encodable(format.element) && elements <= kPacketElementsMax);
  alignas(64) PacketFloats floats;  // NOLINT(cppcoreguidelines-pro-type-member-init): what is used
                                    // is written
  const std::span values = std::span(floats).first(elements);
  decode(format, in, place, values);
  const StandardFloatMode mode;
  encode_floats(kernel_of_element(format), values, out.data());
}

void accumulate(const Format& format, ByteSpan in, float scale, std::span<float> sum) {
  LEEWAY_ASSERT(format.encoded_bytes(sum.size()) == in.size());
  const StandardFloatMode mode;
  if (is_scaled(format.options.codec)) return accumulate_scaled(format, in.data(), scale, sum);
  if (format.options.codec == Codec::sparse)
    return accumulate_sparse(format, in.data(), scale, sum);
  accumulate_floats(float_kernel_of(format), in.data(), scale, sum);
}

void accumulate_first(const Format& format, ByteSpan in, float scale, std::span<float> sum) {
  LEEWAY_ASSERT(format.encoded_bytes(sum.size()) == in.size());
  const StandardFloatMode mode;
  assign(format, in.data(), scale, sum);
}

void restore(const Format& format, const Place& place, std::span<float> sum) {
  const StandardFloatMode mode;
  if (format.options.rotate) unrotate(place, sum);
}

}  // namespace leeway::codec
