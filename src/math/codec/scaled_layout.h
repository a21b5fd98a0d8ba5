// The table of the differences between the block-scaled formats. The definition and the kernels
// read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/codec.h"
#include "codec/minifloat.h"

namespace leeway::codec {

enum class ScaleKind : std::uint8_t {
  none,
  float32,        // little-endian
  power_of_two,   // E8M0
  e4m3,           // under a packet scale
  tensor_engine,  // float32 amax, from which TransformerEngine's S_enc follows
};

struct ScaledLayout {
  Minifloat element{};
  std::size_t block = 0;  // elements that share a scale; 0 if the packet has one scale
  ScaleKind block_scale = ScaleKind::none;
  ScaleKind packet_scale = ScaleKind::none;
};

constexpr ScaledLayout scaled_layout(Codec codec) {
  using enum ScaleKind;
  switch (codec) {
    case Codec::fp8_e4m3:
      return {kE4M3, 0, none, float32};
    case Codec::fp8_e5m2:
      return {kE5M2, 0, none, float32};
    case Codec::fp8_e4m3_block:
      return {kE4M3, 128, float32, none};
    case Codec::fp8_e5m2_block:
      return {kE5M2, 128, float32, none};
    case Codec::mxfp8_e4m3:
      return {kE4M3, 32, power_of_two, none};
    case Codec::mxfp8_e5m2:
      return {kE5M2, 32, power_of_two, none};
    case Codec::mxfp6_e2m3:
      return {kE2M3, 32, power_of_two, none};
    case Codec::mxfp6_e3m2:
      return {kE3M2, 32, power_of_two, none};
    case Codec::mxfp4:
      return {kE2M1, 32, power_of_two, none};
    case Codec::nvfp4:
      return {kE2M1, 16, e4m3, power_of_two};
    case Codec::nvfp4_te:
      return {kE2M1, 16, e4m3, tensor_engine};
    case Codec::luq:
      return {kE3M0, 0, none, float32};
    case Codec::int8:
      return {kInteger8, 0, none, float32};
    default:
      return {};
  }
}

// Returns whether the codec is of the block-scaled family.
constexpr bool is_scaled(Codec codec) {
  return scaled_layout(codec).element.code_bits != 0;
}

// Returns whether rounding to nearest needs BlockScale::rest. It does if scales are not powers of
// two, unless another library's order of operations decides the bits.
constexpr bool has_rests(const ScaledLayout& layout) {
  using enum ScaleKind;
  return layout.packet_scale == float32 || layout.block_scale == float32 ||
         (layout.block_scale == e4m3 && layout.packet_scale == power_of_two);
}

constexpr std::size_t scale_bytes(ScaleKind kind) {
  switch (kind) {
    case ScaleKind::none:
      return 0;
    case ScaleKind::power_of_two:
    case ScaleKind::e4m3:
      return 1;
    case ScaleKind::float32:
    case ScaleKind::tensor_engine:
      return 4;
  }
  return 0;
}

}  // namespace leeway::codec
